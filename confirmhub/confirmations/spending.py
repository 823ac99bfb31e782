"""The moves that spend a yes: the executor's redemption, and what came of it. `ledger` gives them out.

Keyword-only. A refusal is a ConfirmationError and means that nothing was changed. Time is Postgres's.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction

from confirmhub.confirmations import errors, rows
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Outcome
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Result

MAX_DETAIL = 2_000  # characters of an outcome's detail; the rest is cut visibly

# One statement for many, since each guarded call makes it; under the rows' locks, so that two reports of one
# are told apart and the log has one. Without a key it is an operator's, who found out.
REPORT = """
WITH asked AS (
    SELECT * FROM json_to_recordset(%s) AS asked(
        id uuid, key text, actor text, result text, kept text, detail text)
), redeemed AS (
    SELECT c.id, asked.actor, asked.result, asked.kept, asked.detail
    FROM asked JOIN confirmations_confirmation AS c ON c.id = asked.id
    -- By the id alone, as a redemption.
    WHERE (c.status = 'redeemed' AND c.redemption_key = coalesce(asked.key, c.redemption_key)) IS TRUE
    FOR NO KEY UPDATE OF c
), recorded AS (
    INSERT INTO confirmations_outcome (confirmation_id, result, detail, reported_at)
    SELECT id, result, kept, statement_timestamp() FROM redeemed
    ON CONFLICT DO NOTHING RETURNING confirmation_id
), chained AS (
    UPDATE confirmations_confirmation AS c
    SET event_count = c.event_count + 1, has_outcome = true,
        event_head = confirmhub_event_hash(
            c.event_head, c.id, c.event_count + 1, redeemed.result, redeemed.actor, statement_timestamp(),
            redeemed.detail)
    FROM redeemed JOIN recorded ON recorded.confirmation_id = redeemed.id
    WHERE c.id = redeemed.id
    RETURNING c.id, c.requester_client_id, c.event_count, c.event_head,
        redeemed.result, redeemed.actor, redeemed.detail
), logged AS (
    INSERT INTO confirmations_event (confirmation_id, seq, kind, actor, at, detail, hash)
    SELECT id, event_count, result, actor, statement_timestamp(), detail, event_head FROM chained
), told AS (
    INSERT INTO confirmations_notice (confirmation_id, kind, hook_id, attempts)
    SELECT chained.id, 'outcome', hook.id, 0
    FROM chained JOIN confirmations_hook AS hook ON hook.client_id = chained.requester_client_id
    WHERE hook.is_active ON CONFLICT DO NOTHING
)
SELECT redeemed.id, recorded.confirmation_id IS NOT NULL
FROM redeemed LEFT JOIN recorded ON recorded.confirmation_id = redeemed.id
"""


class Report(NamedTuple):
    """One outcome to be recorded."""

    confirmation_id: uuid.UUID
    key: str | None
    actor: str
    result: Result
    detail: str

    @classmethod
    def of(cls, *, receipt: Receipt, result: Result, detail: str) -> Report:
        """What the holder of the receipt says; the detail is cut visibly where it is too long."""
        return cls(receipt.confirmation_id, receipt.redemption_key, "executor", result, _cut(detail))


def report_parameters(reports: Sequence[Report]) -> list[object]:
    """The parameter of `REPORT` for these."""
    told = []
    for each in reports:
        kept = json.dumps(each.detail)  # as the column has it
        told.append(
            {
                "id": str(each.confirmation_id),
                "key": each.key,
                "actor": each.actor,
                "result": each.result.value,
                "kept": kept,
                "detail": f'{{"detail":{kept}}}',
            }
        )
    return [json.dumps(told)]


@rows.refused_when_busy
def redeem(
    *, confirmation_id: uuid.UUID, requester: Principal, action: Action, redemption_key: str
) -> Receipt:
    """Spend an approved confirmation, for the action that is about to be taken.

    Succeeds at most once; the same `redemption_key` gets the same receipt again, marked replayed. The
    spending is committed when this returns, so act after it, never inside a transaction around it.

    Raises:
        NotFound: No such confirmation, or not theirs.
        ActionDiffers: It is for another action or audience.
        AlreadyRedeemed: It was spent under another key.
        Halted: An operator has stopped redemptions like this one.
        InvalidAction: The redemption key is malformed.
        ConfirmationError: Pending, Denied, Expired, Revoked or Cancelled.
        RuntimeError: There is a transaction around the call.
    """
    rows.check_key(redemption_key, of="redemption")
    with transaction.atomic(durable=True):
        pass  # raises inside of another transaction. The statement below is its own, and committed with it.
    asked = rows.Redemption(confirmation_id, requester, action, redemption_key)
    spent = rows.execute(rows.REDEEM, rows.redeem_parameters([asked]))
    if spent:
        return Receipt(confirmation_id, action.digest.hex(), redemption_key, spent[0][1], replayed=False)
    return _explain(confirmation_id, requester, action, redemption_key)


@rows.refused_when_busy
def redeem_with(
    *,
    confirmation_id: uuid.UUID,
    requester: Principal,
    action: Action,
    redemption_key: str,
    effect: Callable[[Receipt], str],
) -> Receipt:
    """Spend an approved confirmation, act, and record the outcome, in one transaction: exactly once.

    For an effect that is rows of this database alone. `effect` returns what it did, in a sentence; what it
    raises undoes all of it, and leaves the approval to be used. The receipt carries the outcome.

    Raises:
        ConfirmationError: As for `redeem`.
        RuntimeError: There is a transaction around the call.
    """
    rows.check_key(redemption_key, of="redemption")
    asked = rows.Redemption(confirmation_id, requester, action, redemption_key)
    with transaction.atomic(durable=True):
        if spent := rows.execute(rows.REDEEM, rows.redeem_parameters([asked])):
            at = spent[0][1]
            receipt = Receipt(confirmation_id, action.digest.hex(), redemption_key, at, replayed=False)
            detail = _cut(effect(receipt))
            report_outcome(receipt=receipt, result=Result.SUCCEEDED, detail=detail)
            return replace(receipt, result=Result.SUCCEEDED, detail=detail)
    return _explain(confirmation_id, requester, action, redemption_key)


def _explain(
    confirmation_id: uuid.UUID, requester: Principal, action: Action, redemption_key: str
) -> Receipt:
    try:
        return _replay(confirmation_id, requester, action, redemption_key)
    except (errors.NotFound, errors.Pending, errors.Busy):
        raise
    except errors.ConfirmationError as exc:
        rows.log_refusal(confirmation_id, actor=requester, refusal=exc)
        raise


def _replay(confirmation_id: uuid.UUID, requester: Principal, action: Action, redemption_key: str) -> Receipt:
    """The receipt that this key got before; else the refusal that explains why it gets none."""
    row = rows.of(confirmation_id, requester)
    confirmation = row.select_related("outcome").first()
    if confirmation is None:
        raise errors.NotFound
    if (confirmation.audience, bytes(confirmation.digest)) != (action.audience, action.digest):
        raise errors.ActionDiffers
    if confirmation.redemption_key != redemption_key or confirmation.redeemed_at is None:
        # Approved and not halted after all: it became so between the statement and this look.
        now_open = rows.halt_on(confirmation) or errors.Busy(retry_after=errors.SOON)
        raise rows.refusal(row, if_approved=now_open)
    outcome = getattr(confirmation, "outcome", None)
    return Receipt(
        confirmation_id,
        action.digest.hex(),
        redemption_key,
        confirmation.redeemed_at,
        replayed=True,
        result=Result(outcome.result) if outcome else None,
        detail=outcome.detail if outcome else "",
    )


@rows.refused_when_busy
def report_outcome(*, receipt: Receipt, result: Result, detail: str = "") -> None:
    """Record what came of the execution. The same result again changes nothing. Joins a transaction.

    `detail` is kept up to 2,000 characters, and cut visibly.

    Raises:
        NotFound: There is no such redemption.
        AlreadyReported: The other result was reported before.
    """
    recorded = _record(Report.of(receipt=receipt, result=result, detail=detail))
    if not recorded and Outcome.objects.get(confirmation_id=receipt.confirmation_id).result != result:
        raise errors.AlreadyReported


@rows.refused_when_busy
def resolve_outcome(*, confirmation_id: uuid.UUID, operator: User, result: Result, note: str) -> None:
    """Record what an operator found out of a redemption that nobody reported on. Joins a transaction.

    Raises:
        NotPermitted: They may not change confirmations.
        InvalidAction: There is no note, or it is longer than 280 characters.
        NotFound: No such confirmation, or it was not redeemed.
        AlreadyReported: An outcome is recorded.
    """
    rows.check_reason(note, required=True)
    rows.check_permission(operator, rows.CHANGE)
    if not _record(Report(confirmation_id, None, rows.name(operator), result, note)):
        raise errors.AlreadyReported


def _record(report: Report) -> bool:
    """Record an outcome. False: one was recorded before, and stays."""
    found = rows.execute(REPORT, report_parameters([report]))
    if not found:
        raise errors.NotFound
    return bool(found[0][1])


def _cut(detail: str) -> str:
    """The execution is over, so its report must not fail for its length; the cut says what it hides."""
    if len(detail) <= MAX_DETAIL:
        return detail
    digest = hashlib.sha256(detail.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{detail[: MAX_DETAIL - 60]} ... {len(detail) - MAX_DETAIL + 60} more, sha256 {digest}"

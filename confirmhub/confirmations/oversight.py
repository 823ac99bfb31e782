"""The moves of operators and of the clock, one function each; `ledger` gives them out with its own.

Keyword-only. A refusal is a ConfirmationError and means that nothing was changed. Time is Postgres's.
"""

from __future__ import annotations

import re
import uuid

from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from django.db.models.functions import Now

from confirmhub.confirmations import errors, rows, rules
from confirmhub.confirmations.models import Confirmation, Halt
from confirmhub.confirmations.states import Status
from confirmhub.database.base import patience

HALT = "confirmations.add_halt"
WAIT = 60.0  # seconds that a stop waits for what has begun before it
_PATTERN = re.compile(r"[\x21-\x7e]{1,100}")


@rows.refused_when_busy
@transaction.atomic
def deny(*, confirmation_id: uuid.UUID, operator: User, reason: str) -> None:
    """Settle a question with no, as an operator, who need not be one of its approvers. Joins a transaction.

    Raises:
        NotPermitted: They may not change confirmations.
        InvalidAction: There is no reason, or it is longer than 280 characters.
        NotFound: No such confirmation.
        ConfirmationError: It is no longer pending; the class says what it is.
    """
    rows.check_reason(reason, required=True)
    rows.check_permission(operator, rows.CHANGE)
    row = Confirmation.objects.filter(id=confirmation_id)
    moved = row.filter(status=Status.PENDING, decide_by__gt=Now())
    if moved.update(status=Status.DENIED, settled_at=Now(), settled_reason=reason) != 1:
        raise rows.refusal(row, if_approved=errors.AlreadyDecided())
    rows.log(confirmation_id, "denied", actor=rows.name(operator), reason=reason)
    confirmation = row.get()
    rows.tell(rules.acting_user(subject=confirmation.requester_subject), "settled", confirmation)
    rows.left_pending(confirmation_id, by=operator)


@rows.refused_when_busy
def halt(
    *, operator: User, reason: str, client_id: str = "", subject: str = "", action_pattern: str = "*"
) -> Halt:
    """Stop redemptions: of one client, of one person's programs, of actions of a name, or all of them.

    When this returns, nothing that it covers is redeemed any more, wherever it is tried, until it is lifted.

    Raises:
        NotPermitted: They may not stop redemptions.
        InvalidAction: There is no reason, or it or the pattern is malformed.
        Busy: It is set, and a redemption that had begun before it has not ended within a minute.
        RuntimeError: There is a transaction around the call.
    """
    rows.check_reason(reason, required=True)
    rows.check_permission(operator, HALT)
    if not _PATTERN.fullmatch(action_pattern):
        raise errors.InvalidAction("The pattern of actions must be 1 to 100 printable ASCII characters.")
    if any(len(value) > 255 or "\0" in value for value in (client_id, subject)):
        raise errors.InvalidAction("A client id or a user's id has at most 255 characters.")
    like = re.sub(r"([\\%_])", r"\\\1", action_pattern).replace("*", "%")
    with transaction.atomic(durable=True):
        made = Halt.objects.create(
            client_id=client_id,
            subject=subject,
            action_pattern=action_pattern,
            action_like=like,
            reason=reason,
            set_by=operator,
        )
    # A redemption whose statement began before that commit holds this table until it ends, which no
    # time-out lets it do for as long as this waits.
    try:
        with patience(seconds=WAIT + 2), transaction.atomic(durable=True):
            for name in ("lock_timeout", "statement_timeout"):
                rows.execute("SELECT set_config(%s, %s, true)", [name, f"{int(WAIT * 1_000)}ms"])
            rows.execute("LOCK TABLE confirmations_halt IN EXCLUSIVE MODE", [])
    except OperationalError as exc:
        raise errors.Busy(
            "The stop is set, and what it covers and has not begun is not redeemed. But what began before "
            "did not end in time: look for what is redeemed without an outcome."
        ) from exc
    return made


@rows.refused_when_busy
@transaction.atomic
def lift(*, halt_id: int, operator: User, reason: str) -> None:
    """Let redemptions go on that were stopped. Joins a transaction.

    Raises:
        NotPermitted: They may not.
        InvalidAction: There is no reason, or it is longer than 280 characters.
        NotFound: No such stop.
        AlreadyDecided: It was lifted before.
    """
    rows.check_reason(reason, required=True)
    rows.check_permission(operator, HALT)
    found = Halt.objects.filter(pk=halt_id)
    lifted = found.filter(lifted_at__isnull=True)
    if lifted.update(lifted_at=Now(), lifted_by=operator, lift_reason=reason) != 1:
        if found.exists():
            raise errors.AlreadyDecided("This stop was lifted before.")
        raise errors.NotFound("There is no such stop.")


@rows.refused_when_busy
@transaction.atomic
def expire_due(*, limit: int) -> int:
    """Give overdue confirmations the status that they have in fact, at most `limit`; say how many.

    It only tidies: each move compares the deadline itself. Joins a transaction.
    """
    overdue = Confirmation.objects.filter(rows.OVERDUE).order_by("id")
    locked = overdue.select_for_update(no_key=True, skip_locked=True).values_list("id", flat=True)
    return rows.expire(list(locked[:limit]))


@rows.refused_when_busy
@transaction.atomic
def remind_due(*, limit: int) -> int:
    """Tell those again who have not decided, of what its policy says so, at most `limit`; say of how many.

    Joins a transaction.
    """
    found = _take(limit, due="remind_at", done="reminded_at")
    for confirmation in found:
        people = list(rules.asked_now(confirmation=confirmation))
        rows.tell(people, "reminder", confirmation)
        rows.log(confirmation.id, "reminded", actor="clock", people=str(len(people)))
    return len(found)


@rows.refused_when_busy
@transaction.atomic
def escalate_due(*, limit: int) -> int:
    """Let the next group decide too, of what its policy says so, at most `limit`; say of how many.

    Joins a transaction.
    """
    found = _take(limit, due="escalate_at", done="escalated_at")
    for confirmation in found:
        # Who is in both groups was asked before.
        people = rules.asked_now(confirmation=confirmation).exclude(groups=confirmation.approver_group_id)
        added = list(people)
        rows.tell(added, "escalated", confirmation)
        rows.log(confirmation.id, "escalated", actor="clock", people=str(len(added)))
    return len(found)


def _take(limit: int, *, due: str, done: str) -> list[Confirmation]:
    """Lock what waits and whose time for this has come, and write down that it is done."""
    waiting = Confirmation.objects.filter(
        status=Status.PENDING, decide_by__gt=Now(), **{f"{due}__lte": Now(), f"{done}__isnull": True}
    )
    locked = waiting.order_by(due).select_for_update(no_key=True, skip_locked=True)
    taken = Confirmation.objects.filter(id__in=list(locked.values_list("id", flat=True)[:limit]))
    taken.update(**{done: Now()})
    return list(taken)

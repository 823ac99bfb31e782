"""What happens once a person has decided: look again, redeem, act, report. One call, in one thread.

A client that leaves, or a server that is told to stop, cannot come between them: a thread is not cancelled.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from django.db import Error as DatabaseError
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, ValidationError

from confirmhub import display
from confirmhub.confirmations import errors, ledger, queries, redeemer
from confirmhub.confirmations.actions import Observation
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Result, Status
from mcp_bridge.errors import text_of
from mcp_bridge.guarded import Guarded, NotNow

logger = logging.getLogger(__name__)


class Done(NamedTuple):
    """What was done of which confirmation, in words."""

    confirmation: Confirmation
    message: str
    replayed: bool
    """Whether it was done before, and not now."""


def act_if_approved(
    guarded: Guarded[Any], arguments: BaseModel, confirmation_id: uuid.UUID, requester: Principal, key: str
) -> Done | Confirmation:
    """Spend the yes and act, if there is one now; else the whole row: it waits, or it is over.

    Raises:
        ToolError, ConfirmationError: It was refused, or it failed; the text says which.
    """
    confirmation = queries.find_approved(confirmation_id=confirmation_id, requester=requester)
    if confirmation is None:
        return queries.get_for_requester(confirmation_id=confirmation_id, requester=requester)
    if guarded.action(arguments).digest != bytes(confirmation.digest):
        raise errors.ActionDiffers
    seen = _look_again(guarded, arguments, confirmation, requester)
    return _spend(guarded, arguments, confirmation, seen, requester, key)


def redeem_and_act(
    guarded: Guarded[Any], arguments: BaseModel, confirmation_id: uuid.UUID, requester: Principal, key: str
) -> Done:
    """Spend the yes and act, or tell what came of it before.

    Raises:
        ToolError, ConfirmationError: It was refused, or it failed; the text says which.
    """
    confirmation = queries.get_for_requester(confirmation_id=confirmation_id, requester=requester)
    if confirmation.effective_status is Status.PENDING:
        raise errors.Pending(retry_after=1)
    # Only an approval is worth a look at the target. All other states are final: redeem refuses, or
    # finds that this very message was answered before.
    approved = confirmation.effective_status is Status.APPROVED
    seen = _look_again(guarded, arguments, confirmation, requester) if approved else None
    return _spend(guarded, arguments, confirmation, seen, requester, key)


def _spend(  # noqa: PLR0917 - all of it is this one call's
    guarded: Guarded[Any],
    arguments: BaseModel,
    confirmation: Confirmation,
    seen: Observation | None,
    requester: Principal,
    key: str,
) -> Done:
    spend: Callable[..., Receipt] = redeemer.redeem_in_thread
    if guarded.one_transaction and seen is not None:
        spend = partial(ledger.redeem_with, effect=_effect(guarded, arguments, seen))
    try:
        receipt = spend(
            confirmation_id=confirmation.id,
            requester=requester,
            action=guarded.action(arguments),
            redemption_key=key,
        )
    except errors.AlreadyRedeemed as exc:
        outcome = getattr(confirmation, "outcome", None)
        raise ToolError(f"{text_of(exc)} {_recorded(outcome)}") from exc
    if receipt.replayed or seen is None:
        return Done(confirmation, _replay(receipt), replayed=True)
    if guarded.one_transaction:
        return Done(confirmation, receipt.detail, replayed=False)
    return Done(confirmation, _act(guarded, receipt, arguments, seen), replayed=False)


def _look_again(
    guarded: Guarded[Any], arguments: BaseModel, confirmation: Confirmation, requester: Principal
) -> Observation:
    """What the target is now. It must be what the person was shown, or the approval is taken back."""
    try:
        seen = guarded.observe(arguments)
    except NotNow:
        raise  # the yes stays
    except ToolError as exc:
        again = f"Call {guarded.name} again only if that was put right."
        raise _taken_back(
            confirmation, requester, f"The target is not as it was shown: {exc}", again
        ) from exc
    if seen.fingerprint != confirmation.fingerprint:
        raise changed(confirmation, requester, guarded)
    return seen


def changed(confirmation: Confirmation, requester: Principal, guarded: Guarded[Any]) -> ToolError:
    """Take an approval back, since it is of what is there no longer; what to raise."""
    again = f"Call {guarded.name} again with the same arguments: the person is shown what changed."
    return _taken_back(confirmation, requester, "The target changed after it was shown.", again)


def _taken_back(confirmation: Confirmation, requester: Principal, why: str, again: str) -> ToolError:
    reason = display.short(why, ledger.MAX_REASON)
    ledger.revoke(confirmation_id=confirmation.id, revoker=requester, reason=reason)
    logger.warning("target changed, approval %s revoked", confirmation.id)
    return ToolError(f"{text_of(errors.TargetChanged())} {why} {again}")


def _effect(guarded: Guarded[Any], arguments: BaseModel, seen: Observation) -> Callable[[Receipt], str]:
    def effect(receipt: Receipt) -> str:
        try:
            return guarded.execute(receipt, arguments, seen)
        except ToolError as exc:
            raise ToolError(f"{exc} Nothing was done, and the yes was not used.") from exc

    return effect


def _act(guarded: Guarded[Any], receipt: Receipt, arguments: BaseModel, seen: Observation) -> str:
    result, detail = Result.FAILED, "The tool failed; the service's log has the cause."
    try:
        detail = guarded.execute(receipt, arguments, seen)
        result = Result.SUCCEEDED
    except ToolError as exc:
        detail = str(exc)
        raise
    finally:
        _report(receipt, result, detail)
    return detail


def _report(receipt: Receipt, result: Result, detail: str) -> None:
    try:
        ledger.report_outcome(receipt=receipt, result=result, detail=detail)
    except (DatabaseError, errors.ConfirmationError):
        # What was done stays done, and the caller must hear of it. The review queue shows the row
        # as redeemed without an outcome.
        logger.exception("outcome %s of %s was not recorded", result, receipt.confirmation_id)


def _replay(receipt: Receipt) -> str:
    if receipt.result is Result.SUCCEEDED:
        return f"This was done before, and was not done again: {receipt.detail}"
    if receipt.result is Result.FAILED:
        raise ToolError(f"This was tried before, and was not tried again. It failed: {receipt.detail}")
    raise ToolError("It is being done, or was cut off. Do not assume either; look with get_confirmation.")


def _recorded(outcome: Any) -> str:
    if outcome is None:
        return "What came of it is not recorded."
    return f"What came of it then: {outcome.result}. {outcome.detail}"


def unfinished(confirmation: Confirmation, guarded: Guarded[Any]) -> str:
    """What to say of one that was redeemed here and has no outcome: what is known, and who can find out."""
    try:
        arguments = guarded.arguments.model_validate(json.loads(confirmation.arguments))
        where = guarded.unfinished(confirmation.id, arguments)
    except ValidationError:
        where = ""  # the tool is another one since
    return (
        "The server began to do it and has recorded no outcome: it is still at it, or was cut off, so it is "
        f"unknown whether it was done. {where}{where and ' '}A person has to look. Do not assume either, and "
        "report no outcome: you did not act."
    )

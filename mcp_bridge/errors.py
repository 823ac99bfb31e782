"""The one place where a refusal of the ledger becomes words for a model: what it is, and what to do next."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError
from mcp.server.mcpserver.exceptions import ToolError

from confirmhub import display
from confirmhub.confirmations import errors

logger = logging.getLogger(__name__)

REASON = 280  # characters of a person's words


def _plain(exc: errors.ConfirmationError) -> str:
    return str(exc)


def _with_reason(exc: errors.ConfirmationError) -> str:
    reason = getattr(exc, "reason", "")
    # A person's words may come back to a model as if they were ours, so they are marked as theirs.
    return f"{exc} The reason given, word for word: {display.short(reason, REASON)}" if reason else str(exc)


def _later(exc: errors.ConfirmationError) -> str:
    return f"{exc} Try again in {getattr(exc, 'retry_after', 1)} s."


def _spent(exc: errors.ConfirmationError) -> str:
    at = (
        f" It was redeemed at {exc.redeemed_at:%Y-%m-%dT%H:%M:%SZ}."
        if isinstance(exc, errors.AlreadyRedeemed)
        else ""
    )
    return f"{exc}{at} Nothing was done now. Ask for a new confirmation only if it must be done once more."


TEXTS: dict[type[errors.ConfirmationError], Callable[[errors.ConfirmationError], str]] = {
    errors.InvalidAction: _plain,
    errors.PolicyDenies: lambda exc: f"{exc} Do not ask again; the operator of confirmhub sets the rules.",
    errors.TooManyOpen: _later,
    errors.NotFound: lambda exc: f"{exc} Check the confirmation_id with list_confirmations.",
    errors.Pending: lambda exc: f"{_later(exc)} Show the person the link that you were given.",
    errors.Denied: _with_reason,
    errors.Expired: _plain,
    errors.Halted: _with_reason,
    errors.PageNeeded: lambda exc: f"{exc} Call the tool again for its link, and show it to the person.",
    errors.Revoked: _with_reason,
    errors.Cancelled: lambda exc: f"{exc} Ask again if it is still wanted.",
    errors.AlreadyRedeemed: _spent,
    errors.ActionDiffers: _plain,
    errors.TargetChanged: lambda exc: f"{exc} Nothing was done, and the approval was taken back.",
    errors.NotRedeemed: lambda exc: f"{exc} Call redeem_confirmation before you act.",
    errors.NotApprover: _plain,
    errors.NotPermitted: _plain,
    errors.SignInTooOld: _plain,
    errors.AlreadyDecided: lambda exc: f"{exc} See with get_confirmation what was decided.",
    errors.ViewChanged: _plain,
    errors.AlreadyReported: lambda exc: f"{exc} It stands; nothing is left to report.",
    errors.Busy: _later,
    errors.Unavailable: _later,
}


def text_of(exc: errors.ConfirmationError) -> str:
    """What a model is told. Total: a refusal without an entry says its own fixed text."""
    return TEXTS.get(type(exc), _plain)(exc)


class AsToolErrors:
    """A block whose refusals are raised as ToolError, whose text reaches the model; anything else stays here.

    Raises:
        ToolError: The ledger refused, or the database does not answer.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, exc: BaseException | None, __: object) -> None:
        match exc:
            case errors.ConfirmationError():
                raise ToolError(text_of(exc)) from exc
            case InterfaceError() | OperationalError():
                logger.error("the database did not answer a tool", exc_info=exc)
                raise ToolError(
                    "The database does not answer, so nothing was decided here. Try again."
                ) from exc
            case DatabaseError():
                logger.error("the database refused what a tool asked of it", exc_info=exc)
                raise ToolError(
                    "The database refused what this tool asked of it, so trying again does not help. The "
                    "service's log has the cause, for whoever wrote the tool."
                ) from exc

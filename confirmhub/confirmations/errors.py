"""What the ledger can refuse. Each class is one answer that a caller can act on.

The text of an error is safe to show to its caller: it says no more about a confirmation than the
caller could read anyway. The words of a person (`reason`) are kept apart from it, since they are
untrusted and go through `display` before any eye or model sees them.
"""

from __future__ import annotations

import datetime as dt
from typing import ClassVar

# Seconds until it is worth trying again.
SOON = 1  # nothing holds it up any more
RETRY_AFTER = 3  # as long as a move waits for its row
ASK_AFTER = 5  # for a person may have decided by then, or one who waits may have left


class ConfirmationError(Exception):
    """The ledger refused."""

    code: ClassVar[str]

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class InvalidAction(ConfirmationError, ValueError):
    """What was asked is malformed."""

    code = "invalid_action"


NOBODY = (
    "Nobody could decide on this: it is asked for no active person, and no rule names a group that could."
    " Name somebody, or have an administrator make such a rule."
)
NO_MEMBER = (
    "Nobody could decide on this: the group that the rule names has no active member."
    " Have an administrator add somebody to it."
)
ALONE = (
    "Nobody could decide on this: the group that the rule names has nobody but the one it is asked for,"
    " who may not approve it themselves. Have an administrator add somebody else to it."
)


class PolicyDenies(ConfirmationError):
    """The rules here do not allow this question."""

    code = "policy_denies"


class TooManyOpen(ConfirmationError):
    """Too many confirmations of this requester are open. Wait until some are settled."""

    code = "too_many_open"

    def __init__(self, *, retry_after: int) -> None:
        super().__init__()
        self.retry_after = retry_after  # seconds


class NotFound(ConfirmationError):
    """No such confirmation."""

    code = "not_found"


class Pending(ConfirmationError):
    """Nobody has decided on this confirmation yet."""

    code = "pending"

    def __init__(self, *, retry_after: int) -> None:
        super().__init__()
        self.retry_after = retry_after  # seconds


class Denied(ConfirmationError):
    """This confirmation was denied. Do not ask again for the same; the answer was no."""

    code = "denied"

    def __init__(self, *, reason: str) -> None:
        super().__init__()
        self.reason = reason  # the approver's words: untrusted


class Expired(ConfirmationError):
    """This confirmation has expired. Ask again if it is still wanted."""

    code = "expired"


class Revoked(ConfirmationError):
    """The approval of this confirmation was revoked."""

    code = "revoked"

    def __init__(self, *, reason: str) -> None:
        super().__init__()
        self.reason = reason  # untrusted


class Cancelled(ConfirmationError):
    """This confirmation was cancelled by the requester."""

    code = "cancelled"


class AlreadyRedeemed(ConfirmationError):
    """This confirmation was already redeemed. A yes can be spent once."""

    code = "already_redeemed"

    def __init__(self, *, redeemed_at: dt.datetime) -> None:
        super().__init__()
        self.redeemed_at = redeemed_at


class NotRedeemed(ConfirmationError):
    """This confirmation was not redeemed, so it has no outcome and no receipt."""

    code = "not_redeemed"


class ActionDiffers(ConfirmationError):
    """The action is not the one that was asked for. Ask for a confirmation of this one."""

    code = "action_differs"


class TargetChanged(ConfirmationError):
    """The target is not what it was when the question was asked. Ask again."""

    code = "target_changed"


class NotApprover(ConfirmationError):
    """This person may not decide on this confirmation."""

    code = "not_approver"


class PageNeeded(ConfirmationError):
    """The policy takes a decision from the confirm page alone, not from a host. Open the page."""

    code = "page_needed"


class NotPermitted(ConfirmationError):
    """This account lacks the permission for that. An administrator can give it."""

    code = "not_permitted"


class Halted(ConfirmationError):
    """An operator has stopped redemptions. Nothing was done. Try again when they are allowed again."""

    code = "halted"

    def __init__(self, *, reason: str) -> None:
        super().__init__()
        self.reason = reason  # the operator's words: untrusted


class SignInTooOld(ConfirmationError):
    """This decision needs a fresh sign-in. Sign in again and decide then."""

    code = "sign_in_too_old"


class AlreadyDecided(ConfirmationError):
    """This confirmation is no longer open for a decision."""

    code = "already_decided"


class ViewChanged(ConfirmationError):
    """What was on the screen is not what this confirmation says. Read it again and decide then."""

    code = "view_changed"


class AlreadyReported(ConfirmationError):
    """Another outcome was reported for this confirmation before."""

    code = "already_reported"


class Busy(ConfirmationError):
    """Others are at work on this confirmation. Nothing was changed; try again."""

    code = "busy"

    def __init__(self, message: str | None = None, *, retry_after: int = RETRY_AFTER) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class Unavailable(Busy):
    """The database did not answer in time. It may have been done or not: try again, with the same key."""

    code = "unavailable"

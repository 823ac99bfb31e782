"""What can be refused. Each class is one answer that a caller can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confirmhub_client.values import Receipt


class Refused(Exception):
    """The hub refused; nothing was done."""

    def __init__(self, problem: dict[str, Any] | None = None) -> None:
        problem = problem or {}
        self.type = str(problem.get("type", ""))
        """Names the refusal for programs, such as urn:confirmhub:policy_denies."""

        self.reason = str(problem.get("reason", ""))
        """Words of a person, where there are any: untrusted."""

        self.errors: dict[str, Any] = problem.get("errors") or {}
        """By field, what is wrong with what was sent."""

        title = problem.get("title") or problem.get("error_description")  # of the token endpoint (RFC 6749)
        words = [title or self.__doc__, problem.get("detail")]
        if self.errors:
            words.append(f"{self.errors}")
        super().__init__(" ".join(str(word) for word in words if word))


class Pending(Refused):
    """Nobody has decided yet."""


class Denied(Refused):
    """The answer was no."""


class Expired(Refused):
    """Nobody decided in time, or the yes was not used in time."""


class Revoked(Refused):
    """The yes was taken back before it was used."""


class Cancelled(Refused):
    """The question was taken back."""


class AlreadyRedeemed(Refused):
    """It was spent before, under another key."""


class NotFound(Refused):
    """No such confirmation, or not this service's."""


class Halted(Refused):
    """An operator has stopped redemptions."""


class Replayed(Refused):
    """It was redeemed under this key before. Do not act again; `receipt` has the outcome, if one is known."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__()
        self.receipt = receipt


class Rejected(Refused):
    """A state was spent before, has expired, or was never issued."""


class Unreachable(Exception):
    """The hub gave no usable answer. It may have done what was asked; repeat it with the same keys."""


class Unreported(Exception):
    """The block ran, and what came of it could not be reported. Do not run it again; report on `receipt`."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(self.__doc__)
        self.receipt = receipt


_BY_TYPE: dict[str, type[Refused]] = {
    "urn:confirmhub:pending": Pending,
    "urn:confirmhub:denied": Denied,
    "urn:confirmhub:expired": Expired,
    "urn:confirmhub:revoked": Revoked,
    "urn:confirmhub:cancelled": Cancelled,
    "urn:confirmhub:already_redeemed": AlreadyRedeemed,
    "urn:confirmhub:not_found": NotFound,
    "urn:confirmhub:halted": Halted,
}


def refusal(problem: dict[str, Any]) -> Refused:
    """The refusal that a problem document (RFC 9457) stands for."""
    return _BY_TYPE.get(str(problem.get("type")), Refused)(problem)

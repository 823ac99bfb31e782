"""Who may decide, how many, and for how long."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.contrib.auth.models import User

from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode


@dataclass(frozen=True, slots=True)
class Policy:
    """The rule for a class of actions. What applied is copied onto each confirmation."""

    name: str
    mode: Mode
    approvals_needed: int
    decide_within: dt.timedelta
    redeem_within: dt.timedelta
    max_open: int
    """How many confirmations of one requester may be open at once."""


CONFIRM_BY_THE_ACTING_USER = Policy(
    name="built-in",
    mode=Mode.CONFIRM,
    approvals_needed=1,
    decide_within=dt.timedelta(minutes=10),
    redeem_within=dt.timedelta(minutes=5),
    max_open=50,
)


def applying_to() -> Policy:
    """The policy that applies: the built-in rule."""
    return CONFIRM_BY_THE_ACTING_USER


def approvers(*, requester: Principal) -> list[User]:
    """The people who may decide on what this requester asks. Empty: nobody, so it must be refused."""
    return [
        user
        for user in _acting_user(requester.subject)
        if may_decide(subject=requester.subject, approver=user)
    ]


def may_decide(*, subject: str, approver: User) -> bool:
    """Whether this person may decide on what was asked for this subject: the acting user, while active."""
    return approver.is_active and approver.pk is not None and subject == str(approver.pk)


def _acting_user(subject: str) -> list[User]:
    """The user behind a subject, which our own authorization server made of the key."""
    return list(User.objects.filter(pk=int(subject))) if subject.isdigit() and len(subject) < 10 else []

"""Who may decide, how many of them, for how long, and how surely: a policy as a value.

`rules` finds the one that applies. What applied is copied onto each confirmation, so that a later edit of
a rule changes nothing that was asked before.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

from confirmhub.confirmations.states import Assurance, Mode


@dataclass(frozen=True, slots=True)
class Policy:
    """The rule for a class of actions."""

    name: str
    mode: Mode
    decide_within: dt.timedelta
    redeem_within: dt.timedelta
    max_open: int
    """How many confirmations of one requester may be open at once."""

    max_waiting: int
    """How many may wait at once for the same approvers, whoever asked."""

    approvals_needed: int = 1
    approver_group_id: int | None = None
    """The group whose members decide, where the mode is `approve`."""

    self_approval: bool = False
    """Whether the acting user may be one of them."""

    sign_in_within: dt.timedelta | None = None
    """How long ago, at most, an approver has signed in; None: as long as their session lasts."""

    question: str = ""
    """The policy's own words for what will be done; empty: the tool author's."""

    assurance: Assurance = Assurance.PAGE
    """The least that a decision must come with. What a host says counts where this is `host` alone."""

    remind_before: dt.timedelta | None = None
    """How long before `decide_by` those who have not decided are told again; None: never."""

    escalate_after: dt.timedelta | None = None
    """How long after it was asked the members of the escalation group may decide too; None: never."""

    escalation_group_id: int | None = None

    def within(self, patience: dt.timedelta | None) -> Policy:
        """The same, with no more time to decide than its requester waits for; None: as it is."""
        if patience is None or patience >= self.decide_within:
            return self
        return replace(self, decide_within=patience)

    @property
    def remind_after(self) -> dt.timedelta | None:
        """How long after it was asked they are told again; None: never, or there is no time for it."""
        if self.remind_before is None or self.remind_before >= self.decide_within:
            return None
        return self.decide_within - self.remind_before


BUILT_IN = Policy(
    name="built-in",
    mode=Mode.CONFIRM,
    decide_within=dt.timedelta(minutes=10),
    redeem_within=dt.timedelta(minutes=5),
    max_open=50,
    max_waiting=200,
)


def matches(*, pattern: str, name: str) -> bool:
    """Whether a name fits a pattern in which `*` stands for any characters. Linear: it never goes back."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    if not name.startswith(first):
        return False
    place = len(first)
    for part in middle:
        # The earliest place leaves the most for what follows.
        found = name.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return len(name) - len(last) >= place and name.endswith(last)

"""What became of the target between a yes that was taken back for it and the same question now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.screen import check_value
from confirmhub.confirmations.states import Status, Verdict
from confirmhub.pages import values, words
from confirmhub.pages.values import Value
from confirmhub.pages.words import Moment


@dataclass(frozen=True, slots=True)
class Change:
    """One observed fact that differs: as it was, and as it is; None where it was or is not there."""

    label: Value
    was: Value | None
    now: Value | None


@dataclass(frozen=True, slots=True)
class Drift:
    """What changed since somebody said yes to the very same action."""

    approved: Moment
    by_viewer: bool
    why: Value | None
    changes: Sequence[Change]
    digest: str
    """The first digits of the action's digest, which is that of the former question too."""


def find(confirmation: Confirmation, before: Confirmation | None, *, viewer: User) -> Drift | None:
    """The drift that this question follows; `before` is the newest approved one of the very same action."""
    if (
        before is None
        or before.settled_at is None
        or before.effective_status is not Status.REVOKED
        or before.fingerprint == confirmation.fingerprint
    ):
        return None
    return Drift(
        approved=words.moment(before.settled_at),
        by_viewer=before.decisions.filter(approver=viewer, verdict=Verdict.APPROVE).exists(),
        why=values.value(before.settled_reason) if before.settled_reason else None,
        changes=[
            Change(values.value(label), _value(was), _value(now))
            for label, was, now in _differing(before.fact_items, confirmation.fact_items)
        ],
        digest=check_value(confirmation.digest),
    )


def _differing(
    before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]
) -> Iterable[tuple[str, str | None, str | None]]:
    """The facts that differ, label by label; of several with one label, the first with the first."""
    was, now = _numbered(before), _numbered(after)
    for place in now | was:
        one, other = was.get(place), now.get(place)
        if one != other:
            yield place[0], one, other


def _numbered(facts: Iterable[tuple[str, str]]) -> dict[tuple[str, int], str]:
    seen: defaultdict[str, int] = defaultdict(int)
    numbered = {}
    for label, value in facts:
        numbered[label, seen[label]] = value
        seen[label] += 1
    return numbered


def _value(raw: str | None) -> Value | None:
    return None if raw is None else values.value(raw)

"""Times, durations and states in the words of the pages."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.utils import timezone

from confirmhub.confirmations.states import Result, Status


@dataclass(frozen=True, slots=True)
class Moment:
    """A time: for machines, and for people with its zone."""

    iso: str
    text: str


@dataclass(frozen=True, slots=True)
class State:
    """Where a confirmation is. `tone` is `good`, `bad`, `warn` or empty: a class of the stylesheet."""

    label: str
    tone: str
    sentence: str


_JUST_NOW = dt.timedelta(seconds=10)

_STATES = {
    Status.PENDING: State("Waiting", "warn", "Nobody has decided yet."),
    Status.APPROVED: State("Approved", "good", "Approved, and not used so far."),
    Status.DENIED: State("Denied", "bad", "Denied. It cannot be used, now or later."),
    Status.CANCELLED: State("Withdrawn", "", "The requester withdrew the question."),
    Status.REVOKED: State("Taken back", "bad", "The approval was taken back before it was used."),
    Status.EXPIRED: State("Expired", "", "Its time was over. It cannot be used."),
}
_UNUSED = State("Approved, not used in time", "", "The yes ran out. It cannot be used any more.")
_REDEEMED = {
    Result.SUCCEEDED: State("Done", "good", "The yes was spent, and the action was reported as done."),
    Result.FAILED: State("Failed", "warn", "The yes was spent, and the action was reported as failed."),
    None: State("Used", "warn", "The yes was spent. What came of it has not been reported."),
}


def state(status: Status, result: Result | None, *, allowed: bool) -> State:
    """The words for a status, and for the outcome where the yes was spent.

    `allowed` says whether there was a yes, without which what expired was a question.
    """
    if status is Status.EXPIRED and allowed:
        return _UNUSED
    return _REDEEMED[result] if status is Status.REDEEMED else _STATES[status]


def moment(at: dt.datetime) -> Moment:
    """A time in the server's zone, to the second: `2026-11-30 14:32:10 UTC`, else with the offset."""
    local = timezone.localtime(at).replace(microsecond=0)
    zone = f"{local:%z}"
    named = "UTC" if zone == "+0000" else f"{zone[:3]}:{zone[3:]}"
    return Moment(iso=local.isoformat(), text=f"{local:%Y-%m-%d %H:%M:%S} {named}")


def day(at: dt.datetime) -> str:
    """A day: `12 November 2026`."""
    local = timezone.localtime(at)
    return f"{local.day} {local:%B %Y}"


def span(length: dt.timedelta) -> str:
    """A duration in its two largest units: `8 min 41 s`, `2 d 4 h`. Nothing and less is `0 s`."""
    seconds = max(0, int(length.total_seconds()))
    days, hours = seconds // 86_400, seconds // 3600 % 24
    minutes, rest = seconds // 60 % 60, seconds % 60
    units = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    first = next((index for index, (number, _) in enumerate(units) if number), 3)
    return " ".join(f"{number} {unit}" for number, unit in units[first : first + 2] if number) or "0 s"


def ago(length: dt.timedelta) -> str:
    """How long ago something was: `just now`, `3 min 20 s ago`."""
    return "just now" if length < _JUST_NOW else f"{span(length)} ago"


def length(within: dt.timedelta) -> str:
    """A duration that a policy names: `5 minutes`, `1 hour`, `90 seconds`."""
    seconds = int(within.total_seconds())
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            number = seconds // size
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return f"{seconds} seconds"

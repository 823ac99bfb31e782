"""The operators' dashboard: what waits, how and how fast is decided, what went wrong, over a span of time.

Every name from outside passes `display` here; the template gets plain values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib import admin
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from confirmhub import display
from confirmhub.confirmations import errors, figures
from confirmhub.confirmations.figures import Counts, Decided, Span, Tally
from confirmhub.review import charts, wording
from confirmhub.review.queue import REPORTS_WITHIN

SHOWN = 10  # lines of a table
WARN = "warn"  # to the stylesheet

# Approvals of a person are pointed out from so many on, where at least this share of them was quick.
POINTED_OUT_FROM, POINTED_OUT_SHARE = 5, 50

# The bands of `figures` in words, and as they stand under their bars.
BANDS = {
    "under 5 s": "<5 s",
    "5 to 15 s": "5-15 s",
    "15 s to 1 min": "15-60 s",
    "1 to 5 min": "1-5 min",
    "5 to 30 min": "5-30 min",
    "over 30 min": ">30 min",
}

# A refusal's code, as the record has it, in words.
REFUSED = {
    errors.AlreadyRedeemed.code: "spent before: a replay",
    errors.ActionDiffers.code: "another action than was asked for",
    errors.Expired.code: "too late",
    errors.Denied.code: "denied",
    errors.Revoked.code: "revoked",
    errors.Cancelled.code: "cancelled",
    errors.Halted.code: "redemptions were stopped",
}


@dataclass(frozen=True, slots=True)
class Range:
    """One length of time that can be looked at, in slots for the chart."""

    title: str
    within: timedelta
    step: timedelta
    slots: str
    """What one slot is called."""

    clock: str
    """The format of a slot's beginning in the table."""

    mark: str
    """The same under its bar."""


RANGES = {
    "hour": Range("Last hour", timedelta(hours=1), timedelta(minutes=5), "5 minutes", "%H:%M", "%H:%M"),
    "day": Range("24 hours", timedelta(days=1), timedelta(hours=1), "hour", "%a %H:%M", "%a %H:%M"),
    "week": Range("7 days", timedelta(days=7), timedelta(hours=6), "6 hours", "%a %d, %H:%M", "%a %d"),
    "month": Range("30 days", timedelta(days=30), timedelta(days=1), "day", "%b %d", "%b %d"),
}
DEFAULT = "day"


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure at the top."""

    label: str
    number: str
    note: str
    link: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table. Every text has been rendered."""

    name: str
    cells: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table, with what its columns are called, and its picture if it has one."""

    key: str
    title: str
    columns: tuple[str, ...]
    lines: list[Line]
    note: str = ""
    chart: SafeString | None = None
    legend: tuple[str, ...] = ()


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The dashboard, of the range that the link says."""
    if not request.user.has_perm("confirmations.view_confirmation"):
        raise PermissionDenied
    name = request.GET.get("range", DEFAULT)
    if name not in RANGES:
        raise BadRequest("The range must be one of: " + ", ".join(RANGES) + ".")
    chosen = RANGES[name]
    during = figures.span(within=chosen.within, step=chosen.step)
    decided = figures.decided(during=during)
    counts = figures.count(during=during, reports_within=REPORTS_WITHIN)
    refused = figures.refused(during=during)
    context = admin.site.each_context(request) | {
        "title": "Dashboard",
        "ranges": [(key, each.title, key == name) for key, each in RANGES.items()],
        "since": wording.when(during.since),
        "until": wording.when(during.until),
        "every": f"{decided.every:,}" if decided.every > 1 else "",
        "tiles": list(_tiles(decided, counts, sum(refused.values()), during)),
        "tables": [
            _over_time(decided, during, chosen),
            _times(decided),
            _approvers(decided),
            _actions(decided),
            _requesters(decided),
            _refusals(refused),
        ],
    }
    return TemplateResponse(request, "admin/dashboard.html", context)


def _tiles(decided: Decided, counts: Counts, refused: int, during: Span) -> Iterator[Tile]:
    queue = reverse("admin:confirmations_confirmation_changelist")
    first = counts.waiting_since
    waits = f"the first for {wording.ago(during.until - first)}" if first else "nobody waits"
    yield Tile("Waiting now", _up_to(counts.waiting), waits, f"{queue}?view=waiting")
    if total := decided.total:
        about = "about " if decided.every > 1 else ""
        hourly = total.decided / ((during.until - during.since) / timedelta(hours=1))
        approved = _share(total.approved, total.decided)
        yield Tile("Decided", f"{about}{total.decided:,}", f"{hourly:,.1f} an hour; {approved} approved")
        yield Tile("Median time to decide", _length(total.median), "from the question to each decision")
        yield Tile(
            "Approved in under 5 s",
            _share(total.quick, total.approved),
            f"of approvals: {about}{total.quick:,}",
            tone=WARN if _is_hasty(total) else "",
        )
    else:
        yield Tile("Decided", "0", "nothing in this time")
    yield Tile(
        "Expired, nobody decided",
        _up_to(counts.unanswered),
        f"of {_up_to(counts.unanswered_and_untold)} no notice had reached anybody"
        if counts.unanswered
        else "no time ran out",
        tone=WARN if counts.unanswered_and_untold else "",
    )
    yield Tile(
        "Refused redemptions",
        _up_to(refused),
        "replays, and what was not allowed; of one question at most ten",
        f"{queue}?view=refused",
    )
    yield Tile(
        "Outcome unknown now",
        _up_to(counts.without_outcome),
        "redeemed, and nobody has said what came of it",
        f"{queue}?view=unknown",
        tone=WARN if counts.without_outcome else "",
    )
    yield Tile(
        "Notices given up",
        _up_to(counts.given_up),
        "tried until there was no point",
        f"{queue}?view=undelivered",
        tone=WARN if counts.given_up else "",
    )


def _over_time(decided: Decided, during: Span, chosen: Range) -> Table:
    none = Tally(during.since, 0, 0, 0, timedelta())
    slots = [(begins, decided.slots.get(begins, none)) for begins in during.slots]
    title = f"Decided per {chosen.slots}"
    series = {
        "approved": [each.approved for _, each in slots],
        "denied": [each.decided - each.approved for _, each in slots],
    }
    return Table(
        "time",
        title,
        (f"From ({timezone.get_current_timezone_name()})", "Approved", "Denied"),
        [
            Line(_clock(begins, chosen.clock), (f"{each.approved:,}", f"{each.decided - each.approved:,}"))
            for begins, each in reversed(slots)
        ],
        chart=charts.bars(
            title=f"{title}, as in the table beside it",
            series=series,
            labels=[_clock(begins, chosen.mark) for begins, _ in slots],
        )
        if decided.total
        else None,
        legend=("approved", "denied"),
    )


def _times(decided: Decided) -> Table:
    numbers = [each.decided if (each := decided.bands.get(band)) else 0 for band in range(len(BANDS))]
    title = "Time to decide"
    return Table(
        "bands",
        title,
        ("From question to decision", "Decisions", "Share"),
        [
            Line(name, (f"{number:,}", _share(number, sum(numbers))))
            for name, number in zip(BANDS, numbers, strict=True)
        ],
        "When somebody opened the page is not recorded: a decision under 5 s was hardly read, "
        "and one after minutes may have been.",
        charts.bars(
            title=f"{title}, as in the table beside it",
            series={"decisions": numbers},
            labels=list(BANDS.values()),
        )
        if decided.total
        else None,
    )


def _approvers(decided: Decided) -> Table:
    quickest = sorted(decided.approvers, key=lambda each: -each.quick)[:SHOWN]
    people = wording.names(str(each.key) for each in quickest)
    return Table(
        "approvers",
        "Approvers, those with the most quick approvals first",
        ("Approver", *_COLUMNS),
        [
            Line(
                people.get(str(each.key), f"account {each.key}"),
                _cells(each),
                "mostly in under 5 s" if _is_hasty(each) else "",
            )
            for each in quickest
        ],
        _rest(decided.approvers),
    )


def _actions(decided: Decided) -> Table:
    return Table(
        "actions",
        "Actions, the most frequent first",
        ("Action", *_COLUMNS),
        [Line(display.short(each.key, wording.SHORT), _cells(each)) for each in decided.actions[:SHOWN]],
        "What is always approved may not need a question; a rule can allow it. " + _rest(decided.actions),
    )


def _requesters(decided: Decided) -> Table:
    busiest = decided.clients[:SHOWN]
    hosts = wording.hosts(each.key for each in busiest)
    return Table(
        "requesters",
        "Requesters, the busiest first",
        ("Requester", *_COLUMNS),
        [Line(hosts[each.key], _cells(each)) for each in busiest],
        _rest(decided.clients),
    )


def _refusals(refused: dict[str, int]) -> Table:
    return Table(
        "refusals",
        "Refused redemptions",
        ("Because it was", "Times"),
        [Line(REFUSED.get(code, display.text(code)), (f"{times:,}",)) for code, times in refused.items()],
    )


_COLUMNS = ("Decided", "Approved", "Under 5 s", "Median")


def _cells(each: Tally[str] | Tally[int]) -> tuple[str, ...]:
    return (
        f"{each.decided:,}",
        _share(each.approved, each.decided),
        _share(each.quick, each.approved),
        _length(each.median),
    )


def _is_hasty(each: Tally[int] | Tally[None]) -> bool:
    return each.approved >= POINTED_OUT_FROM and each.quick * 100 >= each.approved * POINTED_OUT_SHARE


def _rest(several: Iterable[object]) -> str:
    more = len(list(several)) - SHOWN
    return f"And {more:,} more." if more > 0 else ""


def _up_to(number: int) -> str:
    return f"{number:,}{'+' if number >= figures.COUNTED else ''}"


def _share(part: int, whole: int) -> str:
    """In percent; never 0 % of what there is, nor 100 % of what is not all of it."""
    if not whole:
        return "-"
    rounded = round(part * 100 / whole)
    if part and not rounded:
        return "<1 %"
    return ">99 %" if rounded == 100 and part < whole else f"{rounded} %"


def _length(length: timedelta) -> str:
    seconds = length.total_seconds()
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if 60 <= seconds < 600 else wording.ago(length)


def _clock(begins: datetime, form: str) -> str:
    return f"{timezone.localtime(begins):{form}}"

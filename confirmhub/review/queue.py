"""The list of confirmations: what an operator looks for in it, and how it stays quick however long it is."""

# ruff: noqa: ARG002 - Django calls these methods with arguments that it names

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from confirmhub import display
from confirmhub.confirmations import queries
from confirmhub.confirmations.models import REFUSED_OFTEN, Confirmation, Notice
from confirmhub.confirmations.states import OPEN, Status
from confirmhub.review import wording

# The last page that is shown. Who looks further back narrows the list: Postgres would read and drop all rows
# before it.
LAST_PAGE = 100

# An executor may still be at it for so long; after that its outcome is missing.
REPORTS_WITHIN = timedelta(minutes=2)

# Among so many of the newest, the requesters that the filter offers are counted.
LOOKED_AT, OFFERED = 1_000, 8

# Counted up to here: more is "many" to whoever has to work through them.
COUNTED = 100

# What a list does not show is not read.
WHOLE = ("arguments", "facts", "summary", "fingerprint", "tool_digest", "settled_reason", "event_head")


@dataclass(frozen=True, slots=True)
class View:
    """One thing to look for: which rows, in which order. An index finds the first of each."""

    title: str
    rows: Q
    order: str = "-requested_at"
    counted: bool = False


VIEWS = {
    "waiting": View(
        "Waiting longest",
        Q(status=Status.PENDING, decide_by__gt=Now()),
        "requested_at",
        counted=True,
    ),
    "unknown": View(
        "Redeemed, outcome unknown",
        Q(status=Status.REDEEMED, has_outcome=False, redeemed_at__lt=Now() - REPORTS_WITHIN),
        "redeemed_at",
        counted=True,
    ),
    "undelivered": View(
        "A notice was given up",
        Q(id__in=Notice.objects.filter(given_up_at__isnull=False).values("confirmation_id")),
    ),
    "refused": View(f"Refused {REFUSED_OFTEN} times or more", Q(refusals__gte=REFUSED_OFTEN)),
    "usable": View("Approved and not used", Q(status=Status.APPROVED, redeem_by__gt=Now())),
}


class LookFor(admin.SimpleListFilter):
    """The views by name."""

    title = "view"
    parameter_name = "view"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, self._titled(view)) for name, view in VIEWS.items()]

    def queryset(
        self,
        request: HttpRequest,
        queryset: QuerySet[Confirmation],
    ) -> QuerySet[Confirmation]:
        view = VIEWS.get(self.value() or "")
        return queryset.filter(view.rows) if view else queryset

    def _titled(self, view: View) -> str:
        if not view.counted:
            return view.title
        found = len(Confirmation.objects.filter(view.rows).order_by().values_list("id")[:COUNTED])
        return f"{view.title} ({found}{'+' if found == COUNTED else ''})"


class Requester(admin.SimpleListFilter):
    """Those who asked most lately, and whichever is chosen."""

    title = "requester, of the busiest lately"
    parameter_name = "requester"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        newest = Confirmation.objects.order_by("-requested_at").values_list("requester_client_id", flat=True)
        busiest = [client for client, _ in Counter(newest[:LOOKED_AT]).most_common(OFFERED)]
        chosen = self.value()
        if chosen and chosen not in busiest:
            busiest.append(chosen)
        hosts = wording.hosts(busiest)
        return [(client, hosts[client]) for client in busiest]

    def queryset(
        self,
        request: HttpRequest,
        queryset: QuerySet[Confirmation],
    ) -> QuerySet[Confirmation]:
        return queryset.filter(requester_client_id=self.value()) if self.value() else queryset


@dataclass(frozen=True, slots=True)
class Line:
    """A confirmation as one row of the list. Every text has been rendered."""

    id: str
    status: str
    question: str
    action: str
    asker: str
    account: str
    asked: str
    then: str
    """What becomes of it when, or became."""

    left: str
    approvals: str
    """Of a quorum."""

    notes: tuple[tuple[str, str], ...]
    """Of each what the stylesheet makes of it, and its words."""


class Queue(ChangeList):
    """One page of the list. Nothing is counted, and what belongs to its rows is asked for all at once."""

    lines: list[Line]

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        view = VIEWS.get(request.GET.get("view", ""))
        return [view.order, "pk"] if view else super().get_ordering(request, queryset)

    def get_results(self, request: HttpRequest) -> None:
        size = self.list_per_page
        if not 1 <= self.page_num <= LAST_PAGE:
            raise IncorrectLookupParameters
        first = (self.page_num - 1) * size
        # One more than is shown says whether there is a next page.
        rows = list(self.queryset.defer(*WHOLE)[first : first + size + 1])
        if first and not rows:
            raise IncorrectLookupParameters
        self.result_list = rows[:size]
        self.lines = _lines(self.result_list)
        self.result_count = first + len(rows)
        self.paginator = Paginator(range(min(self.result_count, LAST_PAGE * size)), size)
        self.multi_page = self.result_count > size
        self.can_show_all = self.show_full_result_count = False
        self.full_result_count = self.result_count  # so that neither is told as a number of rows
        self.show_admin_actions = bool(rows)


def _lines(rows: Sequence[Confirmation]) -> list[Line]:
    hosts = wording.hosts(row.requester_client_id for row in rows)
    people = wording.names({row.requester_subject for row in rows})
    approved = queries.count_approvals(confirmations=rows)
    lost = given_up(confirmations=rows)
    now = timezone.now()
    return [
        Line(
            id=str(row.id),
            status=str(row.effective_status),
            question=display.short(row.question, wording.SHORT),
            action=display.text(row.action),
            asker=hosts[row.requester_client_id],
            account=people.get(row.requester_subject, ""),
            asked=wording.when(row.requested_at),
            then=f"{then} {wording.when(at)}",
            left=wording.ago(at - now) if at and row.effective_status in OPEN else "",
            approvals=_approvals(row, approved[row.id]),
            notes=tuple(notes(row, lost=lost[row.id])),
        )
        for row in rows
        for then, at in [_then(row)]
    ]


def _then(row: Confirmation) -> tuple[str, datetime | None]:
    """What becomes of it at which time, or became."""
    match row.effective_status:
        case Status.PENDING:
            return "due", row.decide_by
        case Status.APPROVED:
            return "usable until", row.redeem_by
        case Status.EXPIRED:
            return "ran out", row.redeem_by or row.decide_by
        case Status.REDEEMED:
            return "redeemed", row.redeemed_at
        case status:
            return str(status), row.settled_at


def _approvals(row: Confirmation, approved: int) -> str:
    """How far a quorum has come; nothing where one person decides, which the status says."""
    return f"{approved} of {row.approvals_needed} approvals" if row.approvals_needed > 1 else ""


def notes(row: Confirmation, *, lost: int) -> Iterator[tuple[str, str]]:
    """What an operator should see of it at once: what the stylesheet makes of it, and its words.

    `lost` is how many of its notices were given up.
    """
    if row.status == Status.REDEEMED:
        yield (row.outcome.result, row.outcome.result) if row.has_outcome else ("unknown", "outcome unknown")
    if row.effective_status is Status.EXPIRED and row.redeem_by:
        yield "unused", "approved, not used in time"
    if row.refusals:
        yield "refused", "refused once" if row.refusals == 1 else f"refused {row.refusals} times"
    if lost:
        yield "lost", f"{lost} notice{'s' if lost > 1 else ''} given up"


def given_up(*, confirmations: Iterable[Confirmation]) -> Counter[object]:
    """How many notices of each were given up."""
    lost = Notice.objects.filter(
        confirmation__in=[row.id for row in confirmations], given_up_at__isnull=False
    )
    return Counter(lost.values_list("confirmation_id", flat=True))

"""The operators' queue: what was asked, where it stands, what came of it. Read only.

Whoever has the permission to view confirmations sees them all here. Nobody decides here: a decision needs the
confirm page, which shows the whole. Every value from outside passes `display.text`.
"""

# ruff: noqa: ARG002 - Django calls these methods with arguments that it names

from __future__ import annotations

import datetime as dt
import json
from typing import ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from confirmhub import display
from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation, Decision, Event, Notice, Outcome
from confirmhub.confirmations.states import Status
from confirmhub.oauth import clients
from confirmhub.review.rules import RuleAdmin
from confirmhub.review.sign_in import sign_in

__all__ = ["ConfirmationAdmin", "RuleAdmin"]

# One page to sign in on: one look, one lockout, one place to type a password.
admin.site.login = sign_in  # type: ignore[method-assign]
admin.site.site_header = admin.site.site_title = "confirmhub review"
admin.site.index_title = "Review"
admin.site.enable_nav_sidebar = False

# Rows that a search looks through: no index finds a part of a word, and all rows would take too long.
SEARCHED = 5_000

# Characters of a question in the queue; the row's own page shows it whole.
SHORT = 80

_HEAD = ("stands", "asks_whole", "requester", "client", "subject", "rule")
_ASKED = ("act", "where", "given", "seen", "says")
_TIMES = ("asked", "due", "settled", "usable_until", "spent")
_DIGESTS = ("action_digest", "view")


def _when(at: dt.datetime | None) -> str:
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}" if at else "-"


def _may_view(request: HttpRequest) -> bool:
    return request.user.has_perm("confirmations.view_confirmation")


class ReadOnly:
    """For admin classes: seen with the permission to view confirmations, and never changed."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return _may_view(request)


class Record(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs alone
    """Rows that belong to a confirmation."""

    template = "admin/record.html"
    extra = 0


class DecisionInline(Record):
    model = Decision
    fields = readonly_fields = ("who", "verdict", "words", "seen", "renderer", "at")

    @admin.display(description="approver")
    def who(self, row: Decision) -> str:
        return display.text(row.approver.get_username())

    @admin.display(description="reason")
    def words(self, row: Decision) -> str:
        return display.text(row.reason) if row.reason else "-"

    @admin.display(description="view digest")
    def seen(self, row: Decision) -> str:
        return bytes(row.view_digest).hex()[:16]

    @admin.display(description="decided")
    def at(self, row: Decision) -> str:
        return _when(row.decided_at)


class OutcomeInline(Record):
    model = Outcome
    fields = readonly_fields = ("result", "words", "at")

    @admin.display(description="detail")
    def words(self, row: Outcome) -> str:
        return display.text(row.detail) if row.detail else "-"

    @admin.display(description="reported")
    def at(self, row: Outcome) -> str:
        return _when(row.reported_at)


class EventInline(Record):
    model = Event
    fields = readonly_fields = ("seq", "kind", "who", "when", "words", "seal")

    @admin.display(description="actor")
    def who(self, row: Event) -> str:
        return display.text(row.actor)

    @admin.display(description="at")
    def when(self, row: Event) -> str:
        return _when(row.at)

    @admin.display(description="detail")
    def words(self, row: Event) -> str:
        return _pairs([(display.text(key), display.text(said)) for key, said in _said(row) if said])

    @admin.display(description="hash")
    def seal(self, row: Event) -> str:
        return bytes(row.hash).hex()[:16]


class NoticeInline(Record):
    model = Notice
    fields = readonly_fields = ("kind", "whom", "attempts", "sent", "given_up")

    @admin.display(description="recipient")
    def whom(self, row: Notice) -> str:
        return display.text(row.recipient.get_username())

    @admin.display(description="sent")
    def sent(self, row: Notice) -> str:
        return _when(row.sent_at)

    @admin.display(description="given up")
    def given_up(self, row: Notice) -> str:
        return _when(row.given_up_at)


class Queue(ChangeList):
    """The list. It asks for hosts and approvals once, however many rows there are."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        hosts = {client: _host(client) for client in {row.requester_client_id for row in rows}}
        approved = queries.count_approvals(confirmations=rows)
        for row in rows:
            row.host = hosts[row.requester_client_id]
            row.approved = approved[row.id]
        self.result_list = rows


@admin.register(Confirmation)
class ConfirmationAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    list_display = ("stands", "asks", "act", "requester", "asked", "due", "approvals", "came_of_it")
    list_display_links = ("stands", "asks")
    list_filter = ("status", "mode", "requested_at")
    search_fields = ("action", "question", "arguments", "requester_client_id", "requester_subject")
    search_help_text = (
        f"Finds in action, question, arguments (as ASCII JSON), requester of the newest {SEARCHED:,}."
    )
    ordering = ("-requested_at",)
    list_per_page = 50
    show_full_result_count = False
    actions = None
    view_on_site = False
    inlines: ClassVar = [DecisionInline, OutcomeInline, EventInline, NoticeInline]
    fieldsets: ClassVar = [
        (None, {"fields": _HEAD}),
        ("What was asked", {"fields": _ASKED}),
        ("Times", {"fields": _TIMES}),
        ("Digests", {"fields": _DIGESTS}),
    ]
    readonly_fields = (*_HEAD, *_ASKED, *_TIMES, *_DIGESTS)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Confirmation]:
        return queries.list_for_operator()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Confirmation], search_term: str
    ) -> tuple[QuerySet[Confirmation], bool]:
        if search_term:
            times = queryset.order_by("-requested_at").values_list("requested_at", flat=True)
            # By their time: a subquery Postgres would ask only after it has looked through all rows.
            if oldest := times[SEARCHED - 1 : SEARCHED].first():
                queryset = queryset.filter(requested_at__gte=oldest)
        return super().get_search_results(request, queryset, search_term)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {"title": "Confirmations", **(extra_context or {})})

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ChangeList]:
        return Queue

    @admin.display(description="status", ordering="status")
    def stands(self, row: Confirmation) -> str:
        status = row.effective_status
        return format_html('<span class="status {}">{}</span>', str(status), str(status))

    @admin.display(description="question", ordering="question")
    def asks(self, row: Confirmation) -> str:
        return display.short(row.question, SHORT)

    @admin.display(description="question")
    def asks_whole(self, row: Confirmation) -> str:
        return display.text(row.question)

    @admin.display(description="action", ordering="action")
    def act(self, row: Confirmation) -> str:
        return display.text(row.action)

    @admin.display(description="requester", ordering="requester_client_id")
    def requester(self, row: Confirmation) -> str:
        host: str | None = getattr(row, "host", None)
        return host or _host(row.requester_client_id)

    @admin.display(description="client id")
    def client(self, row: Confirmation) -> str:
        return display.text(row.requester_client_id)

    @admin.display(description="acts for subject")
    def subject(self, row: Confirmation) -> str:
        return display.text(row.requester_subject)

    @admin.display(description="rule")
    def rule(self, row: Confirmation) -> str:
        return f"{row.policy}: {row.mode}, {row.approvals_needed} needed, usable within {row.redeem_within}"

    @admin.display(description="audience")
    def where(self, row: Confirmation) -> str:
        return display.text(row.audience)

    @admin.display(description="arguments")
    def given(self, row: Confirmation) -> str:
        pairs = [
            (
                display.text(key),
                display.text(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)),
            )
            for key, item in row.argument_items
        ]
        return _pairs(pairs)

    @admin.display(description="observed")
    def seen(self, row: Confirmation) -> str:
        return _pairs([(display.text(label), display.text(fact)) for label, fact in row.fact_items])

    @admin.display(description="the agent's own words")
    def says(self, row: Confirmation) -> str:
        return display.text(row.summary) if row.summary else "-"

    @admin.display(description="asked", ordering="requested_at")
    def asked(self, row: Confirmation) -> str:
        return _when(row.requested_at)

    @admin.display(description="due", ordering="decide_by")
    def due(self, row: Confirmation) -> str:
        return _when(row.decide_by)

    @admin.display(description="settled")
    def settled(self, row: Confirmation) -> str:
        return _when(row.settled_at)

    @admin.display(description="usable until")
    def usable_until(self, row: Confirmation) -> str:
        return _when(row.redeem_by)

    @admin.display(description="spent")
    def spent(self, row: Confirmation) -> str:
        return _when(row.redeemed_at)

    @admin.display(description="approvals")
    def approvals(self, row: Confirmation) -> str:
        return f"{getattr(row, 'approved', 0)} of {row.approvals_needed}"

    @admin.display(description="outcome")
    def came_of_it(self, row: Confirmation) -> str:
        try:
            return row.outcome.result
        except ObjectDoesNotExist:
            return "unknown" if row.status == Status.REDEEMED else "-"

    @admin.display(description="action digest")
    def action_digest(self, row: Confirmation) -> str:
        return bytes(row.digest).hex()

    @admin.display(description="view digest")
    def view(self, row: Confirmation) -> str:
        return bytes(row.view_digest).hex()


def _said(row: Event) -> list[tuple[str, str]]:
    """The detail as the log's lines are written: one flat object of strings."""
    return [(str(key), str(said)) for key, said in json.loads(row.detail).items()]


def _host(client_id: str) -> str:
    label = clients.describe(client_id=client_id)
    # A client that we do not know is named by its id: for operators, "unknown" would hide who it was.
    host = label.host if label.since or label.verified else client_id
    proved = label.verified and label.since
    return display.short(f"{host} (verified)" if proved else host, SHORT)


def _pairs(pairs: list[tuple[str, str]]) -> str:
    if not pairs:
        return "-"
    return format_html_join("", '<div class="pair"><b>{}</b> <bdi dir="ltr">{}</bdi></div>', pairs)

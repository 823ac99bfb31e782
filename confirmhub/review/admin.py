"""The operators' queue: what was asked, where it stands, what came of it, and what may be done about it.

Whoever has the permission to view confirmations sees them all here; who may change them makes the moves of
`moves`. Nobody approves here. Every value from outside passes `display`.
"""

# ruff: noqa: ARG002 - Django calls these methods with arguments that it names

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join

from confirmhub import display
from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from confirmhub.review import moves, wording
from confirmhub.review.halts import HaltAdmin
from confirmhub.review.queue import LookFor, Queue, Requester, given_up, notes
from confirmhub.review.records import DecisionInline, EventInline, NoticeInline, OutcomeInline, RecordAdmin
from confirmhub.review.rules import RuleAdmin
from confirmhub.review.trail import TrailAdmin
from confirmhub.review.wording import NONE, text, when

__all__ = ["ConfirmationAdmin", "HaltAdmin", "RuleAdmin", "TrailAdmin"]

NOTHING_MARKED = "Nothing is marked. Mark the questions to deny first, then press the button again."

# Rows that a search looks through: no index finds a part of a word, and all rows would take too long.
SEARCHED = 5_000

# Enough of these for every link of ours; any other would read every row.
LOOKUPS = {"view", "requester", "status__exact", "requested_at__gte", "requested_at__lt"}

_HEAD = ("stands", "requester", "client", "subject", "rule", "seals")
_ASKED = ("act", "where", "given", "seen", "says")
_TIMES = ("asked", "due", "reminded", "escalated", "settled", "usable_until", "spent")
_DIGESTS = ("action_digest", "view")


@admin.action(description="Deny", permissions=["operate"])
def deny_marked(
    model_admin: ConfirmationAdmin,
    request: HttpRequest,
    queryset: QuerySet[Confirmation],  # noqa: ARG001 - Django's own idea of it, which can be "all"
) -> HttpResponse | None:
    """Deny what is marked on this page of the list, and never "all"."""
    return moves.deny_marked(
        request, marked=request.POST.getlist(ACTION_CHECKBOX_NAME), page=model_admin.page(request)
    )


@admin.register(Confirmation)
class ConfirmationAdmin(RecordAdmin):
    list_title = "Confirmations"
    list_display = ("stands",)  # its own template draws the list, from `Queue.lines`
    list_filter = (LookFor, "status", Requester, "requested_at")
    search_fields = ("action", "question", "arguments", "requester_client_id", "requester_subject")
    search_help_text = (
        f"Finds in action, question, arguments (as ASCII JSON), requester of the newest {SEARCHED:,}; "
        "or one by its whole number."
    )
    ordering = ("-requested_at",)
    list_per_page = 40
    show_facets = admin.ShowFacets.NEVER
    actions = (deny_marked,)
    inlines: ClassVar = [DecisionInline, OutcomeInline, EventInline, NoticeInline]
    readonly_fields = (*_HEAD, *_ASKED, *_TIMES, *_DIGESTS)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(moves.OPERATE)

    def get_urls(self) -> list[URLPattern]:
        move = path(
            "<uuid:confirmation_id>/<str:name>/",
            self.admin_site.admin_view(self.move_view),
            name="confirmations_confirmation_move",
        )
        # After Django's own, whose change, history and delete have the same form.
        *own, catch_all = super().get_urls()
        return [*own, move, catch_all]

    def move_view(self, request: HttpRequest, confirmation_id: UUID, name: str) -> HttpResponse:
        """The form of one move."""
        if name not in moves.MOVES:
            raise Http404
        return moves.one(
            request, confirmation_id=confirmation_id, move=moves.MOVES[name], page=self.page(request)
        )

    def page(self, request: HttpRequest) -> dict[str, object]:
        """What every page of the review is given."""
        return self.admin_site.each_context(request) | {"opts": self.opts}

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup in LOOKUPS

    def get_fieldsets(self, request: HttpRequest, obj: Confirmation | None = None) -> Any:
        """Of the times those that there are."""
        times = [name for name in _TIMES if obj is not None and getattr(self, name)(obj) != NONE]
        titled = {None: _HEAD, "What was asked": _ASKED, "Times": times, "Digests": _DIGESTS}
        return [(title, {"fields": fields}) for title, fields in titled.items()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Confirmation]:
        return queries.list_for_operator()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Confirmation], search_term: str
    ) -> tuple[QuerySet[Confirmation], bool]:
        try:
            return queryset.filter(id=UUID(search_term.strip())), False
        except ValueError:
            pass
        if search_term:
            times = queryset.order_by("-requested_at").values_list("requested_at", flat=True)
            # By their time: a subquery Postgres would ask only after it has looked through all rows.
            if oldest := times[SEARCHED - 1 : SEARCHED].first():
                queryset = queryset.filter(requested_at__gte=oldest)
        return super().get_search_results(request, queryset, search_term)

    def told(self, request: HttpRequest, row: Confirmation) -> dict[str, object]:
        may_stop = request.user.has_perm("confirmations.add_halt")
        like = urlencode({"client_id": row.requester_client_id, "action_pattern": row.action})
        return {
            "title": display.text(row.question),
            "subtitle": None,
            "crumbs": [moves.above()],
            "here": str(row.id),
            "confirmation_id": row.id,
            "waiting": row.effective_status is Status.PENDING,
            "decides": isinstance(request.user, User)
            and queries.list_waiting_for(approver=request.user).filter(id=row.id).exists(),
            "moves": moves.fitting(row) if self.has_operate_permission(request) else [],
            "halt_like": like if may_stop else "",
            "only": urlencode({"requester": row.requester_client_id}),
        }

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method == "POST" and not request.POST.getlist(ACTION_CHECKBOX_NAME):
            messages.warning(request, NOTHING_MARKED)
            return redirect(request.get_full_path())
        return super().changelist_view(request, extra_context)

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ChangeList]:
        return Queue

    @admin.display(description="status")
    def stands(self, row: Confirmation) -> str:
        remarks = notes(row, lost=given_up(confirmations=[row])[row.id])
        drawn = format_html_join("", ' <span class="note {}">{}</span>', remarks)
        return format_html("{}{}", wording.status(row), drawn)

    @admin.display(description="action")
    def act(self, row: Confirmation) -> str:
        return display.text(row.action)

    @admin.display(description="requester")
    def requester(self, row: Confirmation) -> str:
        return wording.hosts([row.requester_client_id])[row.requester_client_id]

    @admin.display(description="client id")
    def client(self, row: Confirmation) -> str:
        return display.text(row.requester_client_id)

    @admin.display(description="acts for")
    def subject(self, row: Confirmation) -> str:
        subject = display.text(row.requester_subject)
        name = wording.names([row.requester_subject]).get(row.requester_subject)
        return f"{name} (account {subject})" if name else subject

    @admin.display(description="rule")
    def rule(self, row: Confirmation) -> str:
        answered = "decided on the page" if row.assurance == "page" else "a host's word is taken"
        needed = "1 approval" if row.approvals_needed == 1 else f"{row.approvals_needed} approvals"
        return (
            f"{display.text(row.policy)}: {row.mode}, {needed}, {answered}, "
            f"usable for {wording.exactly(row.redeem_within)}"
        )

    @admin.display(description="record")
    def seals(self, row: Confirmation) -> str:
        if queries.log_is_intact(confirmation_id=row.id):
            lines = "1 entry" if row.event_count == 1 else f"{row.event_count} entries"
            sealed = {0: "none", row.event_count: "all"}.get(row.sealed_events, f"{row.sealed_events}")
            return (
                f"{lines}, each sealed with the one before it. Checked just now: all are in place. "
                f"A checkpoint vouches for {sealed} of them so far."
            )
        return format_html(
            '<strong class="broken">{}</strong>',
            "The seals do not fit the entries: somebody has changed this record behind confirmhub's back. "
            "Do not rely on it.",
        )

    @admin.display(description="audience")
    def where(self, row: Confirmation) -> str:
        return display.text(row.audience)

    @admin.display(description="arguments")
    def given(self, row: Confirmation) -> str:
        return wording.flagged(wording.arguments(row))

    @admin.display(description="observed")
    def seen(self, row: Confirmation) -> str:
        return wording.pairs((display.text(label), display.text(fact)) for label, fact in row.fact_items)

    @admin.display(description="the agent's own words")
    def says(self, row: Confirmation) -> str:
        return text(row.summary)

    @admin.display(description="asked")
    def asked(self, row: Confirmation) -> str:
        return when(row.requested_at)

    @admin.display(description="to be decided by")
    def due(self, row: Confirmation) -> str:
        return when(row.decide_by)

    @admin.display(description="reminded")
    def reminded(self, row: Confirmation) -> str:
        return when(row.reminded_at)

    @admin.display(description="escalated")
    def escalated(self, row: Confirmation) -> str:
        if row.escalation_group is None:
            return NONE
        to = f"to {display.text(row.escalation_group.name)}"
        return (
            f"{when(row.escalated_at)}, {to}"
            if row.escalated_at
            else f"not so far; at {when(row.escalate_at)} {to}"
        )

    @admin.display(description="settled")
    def settled(self, row: Confirmation) -> str:
        return when(row.settled_at)

    @admin.display(description="usable until")
    def usable_until(self, row: Confirmation) -> str:
        return when(row.redeem_by)

    @admin.display(description="spent")
    def spent(self, row: Confirmation) -> str:
        return when(row.redeemed_at)

    @admin.display(description="action digest")
    def action_digest(self, row: Confirmation) -> str:
        return bytes(row.digest).hex()

    @admin.display(description="view digest")
    def view(self, row: Confirmation) -> str:
        return bytes(row.view_digest).hex()

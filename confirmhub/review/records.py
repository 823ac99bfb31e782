"""What is looked at and never changed: a list and its rows, and below a confirmation what belongs to it."""

# ruff: noqa: ARG002 - Django calls these methods with arguments that it names

from __future__ import annotations

import json
import re
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from confirmhub import display
from confirmhub.confirmations.models import Decision, Event, Notice, Outcome
from confirmhub.review import wording
from confirmhub.review.wording import NONE, text, when

# Who did something, as the ledger writes it into the log.
_PERSON = re.compile(r"user ([0-9]+)\Z")


class ReadOnly:
    """For admin classes: seen with the permission to view confirmations, and never changed."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("confirmations.view_confirmation")


class RecordAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """A list, in an order of its own, and a page for each of its rows."""

    list_title: str
    sortable_by = ()
    show_full_result_count = False
    view_on_site = False

    def told(self, request: HttpRequest, row: Any) -> dict[str, object]:
        """What the page of a row has besides its fields."""
        return {}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {"title": self.list_title, **(extra_context or {})})

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row = self.get_object(request, object_id) if self.has_view_permission(request) else None
        told = self.told(request, row) if row is not None else {}
        return super().change_view(request, object_id, form_url, {**told, **(extra_context or {})})


class Record(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs alone
    """Rows that belong to a confirmation."""

    template = "admin/record.html"
    extra = 0


class DecisionInline(Record):
    model = Decision
    fields = readonly_fields = ("who", "verdict", "how", "words", "seen", "renderer", "at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Decision]:
        return super().get_queryset(request).select_related("approver").order_by("decided_at")

    @admin.display(description="approver")
    def who(self, row: Decision) -> str:
        return display.text(row.approver.get_username())

    @admin.display(description="given")
    def how(self, row: Decision) -> str:
        return "on the page" if row.assurance == "page" else "by their host"

    @admin.display(description="reason")
    def words(self, row: Decision) -> str:
        return text(row.reason)

    @admin.display(description="view digest")
    def seen(self, row: Decision) -> str:
        return bytes(row.view_digest).hex()[:16]

    @admin.display(description="decided")
    def at(self, row: Decision) -> str:
        return when(row.decided_at)


class OutcomeInline(Record):
    model = Outcome
    verbose_name_plural = "Outcome"
    fields = readonly_fields = ("result", "words", "at")

    @admin.display(description="detail")
    def words(self, row: Outcome) -> str:
        return text(row.detail)

    @admin.display(description="reported")
    def at(self, row: Outcome) -> str:
        return when(row.reported_at)


class EventInline(Record):
    model = Event
    verbose_name_plural = "Log"
    fields = readonly_fields = ("seq", "kind", "who", "when", "words", "seal")
    people: dict[str, str] | None = None  # asked for once; there is one of this class for each page

    @admin.display(description="actor")
    def who(self, row: Event) -> str:
        if self.people is None:
            actors = Event.objects.filter(confirmation_id=row.confirmation_id).values_list("actor", flat=True)
            self.people = wording.names(match[1] for actor in actors if (match := _PERSON.search(actor)))
        match = _PERSON.search(row.actor)
        name = self.people.get(match[1]) if match else None
        return f"{display.text(row.actor)} ({name})" if name else display.text(row.actor)

    @admin.display(description="at")
    def when(self, row: Event) -> str:
        return when(row.at)

    @admin.display(description="detail")
    def words(self, row: Event) -> str:
        # As the log's lines are written: one flat object of strings.
        said = json.loads(row.detail).items()
        return wording.pairs((display.text(key), display.text(str(value))) for key, value in said if value)

    @admin.display(description="hash")
    def seal(self, row: Event) -> str:
        return bytes(row.hash).hex()[:16]


class NoticeInline(Record):
    model = Notice
    fields = readonly_fields = ("kind", "whom", "by", "attempts", "became")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Notice]:
        return super().get_queryset(request).select_related("recipient", "hook").order_by("id")

    @admin.display(description="recipient")
    def whom(self, row: Notice) -> str:
        if row.recipient is not None:
            return display.text(row.recipient.get_username())
        return display.text(f"service {row.hook.client_id}") if row.hook else NONE

    @admin.display(description="channel")
    def by(self, row: Notice) -> str:
        return "webhook" if row.recipient is None else display.text(row.channel or "mail")

    @admin.display(description="became of it")
    def became(self, row: Notice) -> str:
        if row.sent_at:
            return f"{'written to a file' if self._into_folder(row) else 'sent'} {when(row.sent_at)}"
        if row.given_up_at:
            return f"given up {when(row.given_up_at)}"
        return f"withdrawn {when(row.withdrawn_at)}" if row.withdrawn_at else "to be sent"

    @staticmethod
    def _into_folder(row: Notice) -> bool:
        """It is mail, and there is no mail server: it reached nobody."""
        mailer = settings.MAILERS["default"].get("OPTIONS", {})
        return row.recipient is not None and row.channel in ("", "email") and "file_path" in mailer

"""Who edited what in the review: rules, people, groups, programs. Django writes it; nobody changes it here.

Confirmations and stops have records of their own.
"""

# ruff: noqa: ARG002 - Django calls these methods with arguments that it names

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from confirmhub.review.records import RecordAdmin
from confirmhub.review.wording import text, when

SEE = "admin.view_logentry"


class OfRules(admin.SimpleListFilter):
    """Rules decide who is asked; the rest is a filter away."""

    title = "kind"
    parameter_name = "of"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("rules", "Edits of rules")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[LogEntry]) -> QuerySet[LogEntry]:
        if self.value() != "rules":
            return queryset
        return queryset.filter(content_type__app_label="confirmations", content_type__model="rule")


@admin.register(LogEntry)
class TrailAdmin(RecordAdmin):
    list_title = "Edits"
    list_display = ("at", "who", "did", "what", "how")
    list_display_links = None
    list_filter = (OfRules,)
    list_per_page = 40
    show_facets = admin.ShowFacets.NEVER
    actions = None
    fields: ClassVar = ["at", "who", "did", "what", "how"]
    readonly_fields = ("at", "who", "did", "what", "how")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm(SEE)

    def get_queryset(self, request: HttpRequest) -> QuerySet[LogEntry]:
        return super().get_queryset(request).select_related("user", "content_type")

    @admin.display(description="at")
    def at(self, row: LogEntry) -> str:
        return when(row.action_time)

    @admin.display(description="who")
    def who(self, row: LogEntry) -> str:
        return text(row.user.get_username())

    @admin.display(description="did")
    def did(self, row: LogEntry) -> str:
        return {1: "added", 2: "changed", 3: "deleted"}.get(row.action_flag, "-")

    @admin.display(description="what")
    def what(self, row: LogEntry) -> str:
        kind = row.content_type.name if row.content_type else "row"
        return f"{kind} {text(row.object_repr)}"

    @admin.display(description="how")
    def how(self, row: LogEntry) -> str:
        # Django's own are lists in JSON. What `rules` writes has been rendered, value by value.
        theirs = row.change_message.startswith("[")
        return text(row.get_change_message()) if theirs else row.change_message or "-"

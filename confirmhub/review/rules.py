"""The rules that operators keep: which policy applies to which actions, the lowest rank first.

An edit changes nothing that was asked before, since each confirmation carries the policy that applied to it.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from confirmhub import display
from confirmhub.confirmations.models import Rule


@admin.register(Rule)
class RuleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    list_display = ("rank", "title", "action_pattern", "host", "mode", "approvals_needed", "approver_group")
    list_display_links = ("rank", "title")
    list_filter = ("mode",)
    view_on_site = False
    fieldsets: ClassVar = [
        (None, {"fields": ("name", "rank")}),
        ("Applies to", {"fields": ("audience", "action_pattern", "client_id")}),
        ("Decides", {"fields": ("mode", "question", "approver_group", "approvals_needed", "self_approval")}),
        ("Times", {"fields": ("sign_in_within", "decide_within", "redeem_within")}),
        ("Limits", {"fields": ("max_open", "max_waiting")}),
    ]

    @admin.display(description="name", ordering="name")
    def title(self, row: Rule) -> str:
        return display.text(row.name)

    @admin.display(description="client id", ordering="client_id")
    def host(self, row: Rule) -> str:
        return display.text(row.client_id) if row.client_id else "any"

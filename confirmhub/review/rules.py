"""The rules that operators keep: which policy applies to which actions, the lowest rank first.

An edit changes nothing that was asked before, since each confirmation carries the policy that applied to it.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group

from confirmhub import display
from confirmhub.confirmations.models import Rule
from confirmhub.confirmations.states import Mode

NAMED = ("name", "rank")
APPLIES = ("audience", "action_pattern", "client_id")
DECIDES = ("mode", "question", "approver_group", "approvals_needed", "self_approval")
TIMES = ("sign_in_within", "decide_within", "redeem_within")
LIMITS = ("max_open", "max_waiting")
DURATION = "As hours:minutes:seconds, such as 00:10:00."


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs alone
    """Says at the field what the table's constraints would say of the row, and what they cannot know."""

    class Meta:
        model = Rule
        fields = (*NAMED, *APPLIES, *DECIDES, *TIMES, *LIMITS)
        help_texts: ClassVar = {
            "audience": "The exact resource URL of the server that acts, such as https://pay.example/mcp. "
            "Empty: any.",
            "client_id": "The exact client id of the program that asks, as the list of clients has it. "
            "Empty: any.",
            "mode": "Confirm: the person whom the program acts for decides. Approve: people of a group "
            "decide. Allow: nobody is asked, and each use is recorded. Deny: all are refused.",
            "approver_group": "For the mode approve: the people who decide.",
            "approvals_needed": "For the mode approve: how many different people have to say yes. "
            "One no settles it.",
            "self_approval": "For the mode approve: whether the person whom the program acts for may be one "
            "of those who decide.",
            "sign_in_within": f"How long ago, at most, who decides has signed in. {DURATION} Empty: any "
            "sign-in will do.",
            "decide_within": f"How long a question waits before it expires. {DURATION}",
            "redeem_within": f"How long a yes can be used before it expires. {DURATION}",
            "max_open": "How many questions and unused approvals one program may have at once for one "
            "person; more are refused.",
            "max_waiting": "How many questions may wait at once for the same approvers, whoever asks; "
            "more are refused.",
        }

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for name in TIMES:
            if (time := given.get(name)) is not None and time <= dt.timedelta():
                self.add_error(name, "This time must be longer than nothing.")
        for name in LIMITS:
            if given.get(name) == 0:
                self.add_error(name, "A limit of nothing is the mode deny.")
        self._check_quorum(given.get("mode"), given.get("approver_group"), given.get("approvals_needed"))
        return given

    def _check_quorum(self, mode: str | None, group: Group | None, needed: int | None) -> None:
        if needed is not None and needed < 1:
            self.add_error("approvals_needed", "At least one approval is needed.")
        elif mode and mode != Mode.APPROVE and needed not in (None, 1):
            self.add_error("approvals_needed", "Only the mode approve takes more than one approval.")
        if mode != Mode.APPROVE or "approver_group" in self.errors:
            return
        if group is None:
            self.add_error("approver_group", "Name the group whose members approve.")
        elif needed is not None and (active := group.user_set.filter(is_active=True).count()) < needed:
            self.add_error(
                "approvals_needed",
                f"The group {display.text(group.name)} has fewer active members ({active}) than this. "
                "Nothing could ever be approved.",
            )


@admin.register(Rule)
class RuleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    form = RuleForm
    list_display = ("rank", "title", "action_pattern", "host", "mode", "approvals_needed", "approver_group")
    list_display_links = ("rank", "title")
    list_filter = ("mode",)
    view_on_site = False
    fieldsets: ClassVar = [
        (None, {"fields": NAMED}),
        ("Applies to", {"fields": APPLIES}),
        ("Decides", {"fields": DECIDES}),
        ("Times", {"fields": TIMES}),
        ("Limits", {"fields": LIMITS}),
    ]

    @admin.display(description="name", ordering="name")
    def title(self, row: Rule) -> str:
        return display.text(row.name)

    @admin.display(description="client id", ordering="client_id")
    def host(self, row: Rule) -> str:
        return display.text(row.client_id) if row.client_id else "any"

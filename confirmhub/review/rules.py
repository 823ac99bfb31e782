"""The rules that operators keep: which policy applies to which actions, the lowest rank first.

An edit changes nothing that was asked before, since each confirmation carries the policy that applied to it.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest

from confirmhub import display
from confirmhub.confirmations.models import Rule
from confirmhub.confirmations.states import Assurance, Mode

NAMED = ("name", "rank")
APPLIES = ("audience", "action_pattern", "client_id")
DECIDES = ("mode", "question", "approver_group", "approvals_needed", "self_approval", "assurance")
TIMES = ("sign_in_within", "decide_within", "redeem_within")
SILENCE = ("remind_before", "escalate_after", "escalation_group")
LIMITS = ("max_open", "max_waiting")
DURATION = "As hours:minutes:seconds, such as 00:10:00."


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs alone
    """Says at the field what the table's constraints would say of the row, and what they cannot know."""

    class Meta:
        model = Rule
        fields = (*NAMED, *APPLIES, *DECIDES, *TIMES, *SILENCE, *LIMITS)
        help_texts: ClassVar = {
            "audience": "The exact resource URL of the server that acts, such as https://pay.example/mcp. "
            "Empty: any.",
            "client_id": "The exact client id of the program that asks, as the list of programs has it. "
            "Empty: any.",
            "mode": "Confirm: the person whom the program acts for decides. Approve: people of a group "
            "decide. Allow: nobody is asked, and each use is recorded. Deny: all are refused.",
            "approver_group": "For the mode approve: the people who decide.",
            "approvals_needed": "For the mode approve: how many different people have to say yes. "
            "One no settles it.",
            "self_approval": "For the mode approve: whether the person whom the program acts for may be one "
            "of those who decide.",
            "assurance": "Page: only what is decided on the confirm page counts. Host: for the mode confirm, "
            "the program's word that its person said so is taken, too.",
            "sign_in_within": f"How long ago, at most, who decides has signed in. {DURATION} Empty: any "
            "sign-in will do.",
            "decide_within": f"How long a question waits before it expires. {DURATION}",
            "redeem_within": f"How long a yes can be used before it expires. {DURATION}",
            "remind_before": "How long before a question expires those who have not decided are told again. "
            f"{DURATION} Empty: never.",
            "escalate_after": "For the mode approve: how long after it was asked another group may decide, "
            f"too, where nobody has. {DURATION} Empty: never.",
            "escalation_group": "For the mode approve: that other group.",
            "max_open": "How many questions and unused approvals one program may have at once for one "
            "person; more are refused.",
            "max_waiting": "How many questions may wait at once for the same approvers, whoever asks; "
            "more are refused.",
        }

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for name in (*TIMES, "remind_before", "escalate_after"):
            if (time := given.get(name)) is not None and time <= dt.timedelta():
                self.add_error(name, "This time must be longer than nothing.")
        for name in LIMITS:
            if given.get(name) == 0:
                self.add_error(name, "A limit of nothing is the mode deny.")
        self._check_silence(given)
        if given.get("assurance") == Assurance.HOST and (
            given.get("mode") != Mode.CONFIRM or given.get("sign_in_within")
        ):
            self.add_error(
                "assurance", "A host answers for the mode confirm alone, and where any sign-in will do."
            )
        self._check_quorum(given.get("mode"), given.get("approver_group"), given.get("approvals_needed"))
        return given

    def _check_silence(self, given: dict[str, Any]) -> None:
        within = given.get("decide_within")
        for name in ("remind_before", "escalate_after"):
            if within is not None and (time := given.get(name)) is not None and time >= within:
                self.add_error(name, "A question expires sooner than that.")
        after, group = given.get("escalate_after"), given.get("escalation_group")
        if "escalate_after" in self.errors or "escalation_group" in self.errors:
            return
        if (after or group) and given.get("mode") != Mode.APPROVE:
            self.add_error("escalate_after", "Only the mode approve asks another group.")
        elif bool(after) != bool(group):
            missing = "escalation_group" if after else "escalate_after"
            self.add_error(missing, "It takes both a time and a group.")

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
        ("If nobody decides", {"fields": SILENCE}),
        ("Limits", {"fields": LIMITS}),
    ]

    @admin.display(description="name", ordering="name")
    def title(self, row: Rule) -> str:
        return display.text(row.name)

    @admin.display(description="client id", ordering="client_id")
    def host(self, row: Rule) -> str:
        return display.text(row.client_id) if row.client_id else "any"

    # What Django writes down of an edit is the names of the fields. Who reads the trail needs what they held.
    def construct_change_message(  # type: ignore[override]  # Django takes a text, too
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        form: RuleForm,
        formsets: Any,  # noqa: ARG002 - the same
        add: bool = False,  # noqa: FBT001, FBT002 - the same
    ) -> str:
        if add:
            return _held(form.instance)
        changes = (
            f"{name}: {_said(_old(form, name))} -> {_said(form.cleaned_data.get(name))}"
            for name in form.changed_data
        )
        return "; ".join(changes) or "Saved without a change."

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Rule]) -> list[LogEntry]:
        assert request.user.pk is not None
        return [
            entry
            for rule in queryset
            for entry in LogEntry.objects.log_actions(
                request.user.pk, [rule], DELETION, change_message=_held(rule)
            )
        ]


def _held(rule: Rule) -> str:
    return "; ".join(f"{name}: {_said(getattr(rule, name))}" for name in RuleForm.Meta.fields)


def _old(form: RuleForm, name: str) -> object:
    value = form.initial.get(name)
    if isinstance(form.fields[name], forms.ModelChoiceField) and value is not None:
        return Group.objects.filter(pk=value).first() or f"group {value}"
    return value


def _said(value: object) -> str:
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return display.text(value.name if isinstance(value, Group) else str(value))

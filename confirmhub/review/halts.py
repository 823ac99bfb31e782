"""The stop: while one is in force, nothing that it covers is redeemed. Set and lifted here, never changed."""

# ruff: noqa: ARG002 - Django calls these methods with arguments that it names

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import F, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from confirmhub import display
from confirmhub.confirmations import errors, ledger
from confirmhub.confirmations.models import Halt
from confirmhub.review import acts, reach, wording
from confirmhub.review.acts import Act, Case, ReasonForm
from confirmhub.review.moves import operator
from confirmhub.review.records import RecordAdmin
from confirmhub.review.wording import text, when

LIST = "admin:confirmations_halt_changelist"
STOP = "confirmations.add_halt"
EVERYTHING = "*"

_FIELDS = ("state", "program", "person", "act", "why", "who", "since", "lifted", "lifted_why")


class HaltForm(ReasonForm):
    """What to stop. As it opens, it stops everything."""

    client_id = forms.CharField(
        label="Only this program",
        max_length=255,
        required=False,
        help_text="Its exact client id. Empty: every program.",
    )
    account = forms.CharField(
        label="Only for this person",
        max_length=150,
        required=False,
        help_text="Their sign-in name: what any program does for them. Empty: everybody.",
    )
    action_pattern = forms.CharField(
        label="Only these actions",
        max_length=100,
        initial=EVERYTHING,
        help_text="A name, where * stands for any characters, such as payments.*. Just * is every action.",
    )
    reason = acts.reason_field("Everybody whom it concerns reads it, on every page.")
    field_order = ("client_id", "account", "action_pattern", "reason")

    def clean_account(self) -> str:
        """The subject of the account of this name; empty where none is given."""
        name: str = self.cleaned_data["account"]
        if not name:
            return ""
        person = User.objects.filter(username=name).first()
        if person is None:
            raise forms.ValidationError("There is no account of this name.")
        return str(person.pk)


class LiftForm(ReasonForm):
    """Why redemptions may go on."""

    reason = acts.reason_field("The stop's record keeps it.")


@admin.register(Halt)
class HaltAdmin(RecordAdmin):
    list_title = "Stops"
    # The move beside the state, where a phone shows it too.
    list_display = ("state", "move", "covers", "why", "who", "since", "lifted")
    list_display_links = ("state", "covers")
    actions = None
    fieldsets: ClassVar = [(None, {"fields": _FIELDS})]
    readonly_fields = _FIELDS

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm(STOP)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Halt]:
        return super().get_queryset(request).select_related("set_by", "lifted_by")

    def get_ordering(self, request: HttpRequest) -> list[Any]:
        return [F("lifted_at").desc(nulls_first=True), "-id"]

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        may = self.has_add_permission(request)
        return tuple(name for name in self.list_display if may or name != "move")

    def get_urls(self) -> list[URLPattern]:
        lift = path(
            "<int:halt_id>/lift/", self.admin_site.admin_view(self.lift_view), name="confirmations_halt_lift"
        )
        return [lift, *super().get_urls()]

    def told(self, request: HttpRequest, row: Halt) -> dict[str, object]:
        """The way to lift it."""
        may = row.lifted_at is None and self.has_add_permission(request)
        return {
            "title": f"Stop {row.pk}",
            "subtitle": None,
            "crumbs": [_above()],
            "lifts": row.pk if may else None,
        }

    # Not as Django adds rows, within a transaction: what stops must be committed and waited for.
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form that stops, and the stop."""
        person = operator(request, permission=STOP)
        form = HaltForm(request.POST) if request.method == "POST" else HaltForm(initial=_given(request))
        if request.method == "POST" and form.is_valid():
            said = form.cleaned_data
            try:
                halt = ledger.halt(
                    operator=person,
                    reason=said["reason"],
                    client_id=said["client_id"],
                    subject=said["account"],
                    action_pattern=said["action_pattern"],
                )
            except errors.Busy as exc:
                # It may be set all the same, as the words say, and the list shows.
                messages.error(request, str(exc))
                return redirect(LIST)
            except errors.ConfirmationError as exc:
                form.add_error(None, str(exc))
            else:
                _tell(request, halt)
                return redirect(LIST)
        act = Act(
            title="Stop redemptions",
            means="While it is in force, nothing that it covers is redeemed, wherever it is tried; questions "
            "are asked and answered as before. What is being carried out is not interrupted.",
            button="Stop",
            crumbs=[_above()],
            back=reverse(LIST),
        )
        return acts.page(request, act, form=form, context=self._page(request))

    def lift_view(self, request: HttpRequest, halt_id: int) -> HttpResponse:
        """The form that lets redemptions go on, and the lift."""
        person = operator(request, permission=STOP)
        halt = self.get_queryset(request).filter(pk=halt_id).first()
        if halt is None:
            raise Http404
        form = LiftForm(request.POST if request.method == "POST" else None)
        if halt.lifted_at is not None:
            messages.warning(request, "It was lifted before.")
            return redirect(LIST)
        if request.method == "POST" and form.is_valid():
            try:
                ledger.lift(halt_id=halt_id, operator=person, reason=form.cleaned_data["reason"])
            except errors.ConfirmationError as exc:
                messages.error(request, f"Nothing was changed. {exc}")
            else:
                messages.success(request, "Lifted. What it covered can be redeemed again.")
            return redirect(LIST)
        told = [("reason", self.why(halt)), ("set by", self.who(halt)), ("since", self.since(halt))]
        act = Act(
            title="Lift this stop",
            means="What this stop covers can be redeemed again.",
            button="Lift it",
            crumbs=[_above()],
            back=reverse(LIST),
            cases=[Case(title=f"It covers {self.covers(halt)}", rows=told)],
            harms=False,
        )
        return acts.page(request, act, form=form, context=self._page(request))

    def _page(self, request: HttpRequest) -> dict[str, object]:
        return self.admin_site.each_context(request) | {"opts": self.opts}

    @admin.display(description="state")
    def state(self, row: Halt) -> str:
        state, word = ("lifted", "lifted") if row.lifted_at else ("denied", "in force")
        return format_html('<span class="status {}">{}</span>', state, word)

    @admin.display(description="covers")
    def covers(self, row: Halt) -> str:
        if not (row.client_id or row.subject) and row.action_pattern == EVERYTHING:
            return "everything"
        action = "every action" if row.action_pattern == EVERYTHING else display.text(row.action_pattern)
        program = f" of {wording.hosts([row.client_id])[row.client_id]}" if row.client_id else ""
        return f"{action}{program}{f' for {self.person(row)}' if row.subject else ''}"

    @admin.display(description="program")
    def program(self, row: Halt) -> str:
        if not row.client_id:
            return "every program"
        named, id_ = wording.hosts([row.client_id])[row.client_id], display.text(row.client_id)
        return id_ if named == id_ else f"{named}, client id {id_}"

    @admin.display(description="person")
    def person(self, row: Halt) -> str:
        if not row.subject:
            return "everybody"
        return wording.names([row.subject]).get(row.subject, display.text(row.subject))

    @admin.display(description="actions")
    def act(self, row: Halt) -> str:
        return display.text(row.action_pattern)

    @admin.display(description="reason")
    def why(self, row: Halt) -> str:
        return text(row.reason)

    @admin.display(description="set by")
    def who(self, row: Halt) -> str:
        return display.text(row.set_by.get_username())

    @admin.display(description="since")
    def since(self, row: Halt) -> str:
        return when(row.set_at)

    @admin.display(description="lifted")
    def lifted(self, row: Halt) -> str:
        if row.lifted_by is None:
            return "-"
        return f"{when(row.lifted_at)} by {display.text(row.lifted_by.get_username())}"

    @admin.display(description="why it was lifted")
    def lifted_why(self, row: Halt) -> str:
        return text(row.lift_reason)

    @admin.display(description="")
    def move(self, row: Halt) -> str:
        if row.lifted_at:
            return ""
        return format_html(
            '<a href="{}">Lift it</a>', reverse("admin:confirmations_halt_lift", args=[row.pk])
        )


def _given(request: HttpRequest) -> dict[str, str]:
    """What a link of ours fills in."""
    asked = {name: request.GET.get(name, "") for name in ("client_id", "action_pattern")}
    return {name: value for name, value in asked.items() if value and value.isascii() and value.isprintable()}


def _above() -> tuple[str, str]:
    return HaltAdmin.list_title, reverse(LIST)


def _tell(request: HttpRequest, halt: Halt) -> None:
    """Say what was stopped, and where it looks as if something else was meant."""
    reached = reach.of(halt=halt)
    messages.success(request, f"Stopped. {reached.covers}")
    if reached.doubt:
        messages.warning(request, reached.doubt)

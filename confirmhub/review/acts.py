"""The page on which an operator is about to do something: what it means, to what, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from confirmhub.confirmations import ledger


def reason_field(help_text: str, *, label: str | None = None) -> forms.CharField:
    """The field for the operator's own words."""
    return forms.CharField(
        label=label,
        max_length=ledger.MAX_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=help_text,
    )


class ReasonForm(forms.Form):
    """Why. The record keeps it, and those whom it concerns read it."""

    reason = reason_field("The record keeps it, and those who asked will read it.")


@dataclass(frozen=True, slots=True)
class Case:
    """What it is about to be done to. Each text has been rendered."""

    title: str
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Act:
    """What is about to be done."""

    title: str
    means: str
    button: str
    crumbs: Sequence[tuple[str, str]]
    """The pages above this one: their names and addresses."""

    back: str
    """The address for who leaves it."""

    cases: Sequence[Case] = ()
    harms: bool = True
    """Whether it ends something, which its button then looks like."""

    marked: Sequence[str] = ()
    """The ids of the rows of a list, where it is done to several."""


def page(request: HttpRequest, act: Act, *, form: ReasonForm, context: dict[str, object]) -> HttpResponse:
    """Show it. `context` is what every page of the review is given."""
    told = {"title": act.title, "crumbs": act.crumbs, "act": act, "form": form}
    return TemplateResponse(request, "admin/act.html", context | told)

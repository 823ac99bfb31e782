"""Tags of the review's own templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from django import template
from django.contrib import admin
from django.db.models import Model
from django.db.models.options import Options
from django.urls import reverse

from confirmhub.review.site import ReviewSite

register = template.Library()


@register.simple_tag
def labelled(headers: Iterable[Mapping[str, str]], cells: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each cell of a row with the header above it; the boxes that mark rows need no words."""
    for header, cell in zip(headers, cells, strict=True):
        yield "" if "action-checkbox" in header["class_attrib"] else header["text"], cell


@register.simple_tag
def list_title(opts: Options[Model]) -> str:
    """What the first page calls the list of these."""
    site = admin.site
    assert isinstance(site, ReviewSite)
    return site.list_title(opts)


@register.simple_tag
def above(opts: Options[Model]) -> list[tuple[str, str]]:
    """The list, as the page above one of its rows."""
    return [(list_title(opts), reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist"))]

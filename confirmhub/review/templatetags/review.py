"""Tags of the review's own templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from django import template

register = template.Library()


@register.simple_tag
def labelled(headers: Iterable[Mapping[str, str]], cells: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each cell of a row with the header above it; the boxes that mark rows need no words."""
    for header, cell in zip(headers, cells, strict=True):
        yield "" if "action-checkbox" in header["class_attrib"] else header["text"], cell

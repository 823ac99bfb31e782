"""Bars as SVG that stands in the page: what pygal draws, without the styles and scripts that it adds.

Our policy allows neither, and the page's own stylesheet gives the colours, in both schemes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pygal
from django.utils.safestring import SafeString
from pygal.etree import etree

WIDTH, HEIGHT = 560, 250  # units of the picture, which is as wide as its place
LABELS = 6  # about so many along the bottom

# What is left of the drawing: shapes, texts, and where they are.
ELEMENTS = frozenset({"svg", "g", "path", "rect", "text"})
ATTRIBUTES = frozenset({"class", "d", "height", "rx", "ry", "transform", "viewBox", "width", "x", "y"})
NAMESPACE = "{http://www.w3.org/2000/svg}"


def bars(*, title: str, series: Mapping[str, Sequence[int]], labels: Sequence[str]) -> SafeString:
    """Stacked bars, one for each label, of series by name. `title` is what a screen reader says of it.

    Templates take it as it is: the serializer has escaped what it holds.
    """
    top = max(map(sum, zip(*series.values(), strict=True)))
    every = -(-len(labels) // LABELS)
    chart = pygal.StackedBar(
        js=(),
        css=(),
        width=WIDTH,
        height=HEIGHT,
        margin=4,
        margin_right=14,  # half of the last label
        show_legend=False,
        x_labels=[label if place % every == 0 else "" for place, label in enumerate(labels)],
        truncate_label=-1,
        y_labels=ticks(top),
        value_formatter="{:,.0f}".format,
        rounded_bars=2,
        no_prefix=True,
    )
    for name, values in series.items():
        chart.add(name, values)
    root = chart.render_tree()
    _clean(root)
    root.attrib.pop("id", None)
    root.set("class", "chart")
    root.set("role", "img")
    root.set("aria-label", title)
    return SafeString(etree.tostring(root, encoding="unicode"))


def ticks(top: int) -> list[int]:
    """Round numbers from 0 to `top`, at least 1, or beyond; at most five above 0."""
    step = next(
        step for power in range(19) for step in (10**power, 2 * 10**power, 5 * 10**power) if step * 5 >= top
    )
    return list(range(0, top + step, step))


def _clean(element: Any) -> None:
    for name in set(element.attrib) - ATTRIBUTES:
        del element.attrib[name]
    for child in list(element):
        # A comment's tag is no text. pygal's own elements are in no namespace, and its root declares one.
        if isinstance(child.tag, str) and child.tag.removeprefix(NAMESPACE) in ELEMENTS:
            _clean(child)
        else:
            element.remove(child)

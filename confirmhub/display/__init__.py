"""Untrusted text, made fit for a person to decide on. Needs nothing but Python.

`text` for one line of text, `show` for a page, `lines` for longer values, `short` where there is
little room. `unshow` undoes `text`.
"""

from confirmhub.display.cut import short
from confirmhub.display.finds import LOUDNESS, Level
from confirmhub.display.flags import Flag
from confirmhub.display.render import VERSION, Part, Shown, lines, show, text, unshow

__all__ = [
    "LOUDNESS",
    "VERSION",
    "Flag",
    "Level",
    "Part",
    "Shown",
    "lines",
    "short",
    "show",
    "text",
    "unshow",
]

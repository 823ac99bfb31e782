"""What the tokens of a value stand for, told by kind.

The level depends on the neighbours: a ZERO WIDTH SPACE between Thai words is usual, inside a
word of ASCII letters it is not.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator, Sequence

from confirmhub.display.finds import Find, Level
from confirmhub.display.names import named
from confirmhub.display.properties import (
    ENCLOSING_MARK,
    MARK,
    SPACING_MARK,
    UNASSIGNED,
    kind,
    scripts_of,
)
from confirmhub.display.spans import Span

# Told by the character itself, wherever it stands.
_BY_CHARACTER: dict[str, tuple[str, Level]] = {
    **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ("bidi", "warn")),
    **dict.fromkeys("\b\x1b\x7f\x90\x98\x9b\x9c\x9d\x9e\x9f", ("terminal", "warn")),
    **dict.fromkeys("\n\v\f\x85\u2028\u2029", ("line-break", "info")),
    **dict.fromkeys("\t ", ("space", "info")),
}
_BY_CATEGORY: dict[str, tuple[str, Level]] = {
    "Zs": ("space", "info"),
    "Cc": ("control", "warn"),
    "Cs": ("undecodable", "info"),
    "Co": ("private", "info"),
    **dict.fromkeys(["Ps", "Pe", "Pi", "Sm"], ("bracket", "info")),
}
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc\U00016fe4\U0001d159")
_SOFT_HYPHEN = "\u00ad"
_TAGS = range(0xE0000, 0xE0080)
_MOST_SPELLED = 120
"""How much of a hidden text a message spells out, in characters."""


def find(value: str, pieces: Sequence[Span]) -> Iterator[Find]:
    """One find for each token, or for each stretch of tokens that spells something."""
    for carries, group in itertools.groupby(
        pieces, lambda piece: piece.escaped and _carries(value[piece.start])
    ):
        tokens = [piece for piece in group if piece.escaped]
        if carries:
            start, stop = tokens[0].start, tokens[-1].stop
            if stop - start > 1 or _is_tag(value[start]):
                what = _spelled(value[start : min(stop, start + _MOST_SPELLED)], stop - start)
                yield Find("hidden-text", "warn", start, what, stop - start)
                continue
        for piece in tokens:
            yield _told(value, piece)


def _told(value: str, piece: Span) -> Find:
    char = value[piece.start]
    before, after = value[piece.start - 1 : piece.start], value[piece.stop : piece.stop + 1]
    category = unicodedata.category(char)
    code: str
    level: Level
    if char in _BY_CHARACTER:
        code, level = _BY_CHARACTER[char]
    elif char == "\r":
        # By itself it goes back to the start of the line, and what follows covers the line.
        code, level = ("line-break", "info") if after == "\n" else ("terminal", "warn")
    elif kind(char) == UNASSIGNED:
        code, level = "unassigned", "info"
    elif kind(char) in (MARK, SPACING_MARK, ENCLOSING_MARK):
        code, level = "mark", "info"
    elif category in _BY_CATEGORY:
        code, level = _BY_CATEGORY[category]
    elif char in _BLANKS:
        beside = scripts_of(before or " ") | scripts_of(after or " ")
        code, level = "blank", "info" if scripts_of(char) & beside else "warn"
    else:
        inside = char != _SOFT_HYPHEN and _in_ascii_word(before) and _in_ascii_word(after)
        code, level = "invisible", "warn" if inside else "info"
    return Find(code, level, piece.start, named(char), piece.stop - piece.start)


def _in_ascii_word(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _is_tag(char: str) -> bool:
    return ord(char) in _TAGS


def _carries(char: str) -> bool:
    """Whether text can be hidden in runs of this character's kind."""
    return _is_tag(char) or _selected_byte(char) is not None


def _selected_byte(char: str) -> int | None:
    """The byte that a variation selector stands for, in the usual way of hiding bytes."""
    code = ord(char)
    if 0xFE00 <= code <= 0xFE0F:
        return code - 0xFE00
    if 0xE0100 <= code <= 0xE01EF:
        return code - 0xE0100 + 16
    return None


def _spelled(stretch: str, length: int) -> str:
    data = bytes(ord(char) - _TAGS.start if _is_tag(char) else _selected_byte(char) or 0 for char in stretch)
    more = "..." if length > len(stretch) else ""
    return f"from {named(stretch[0])} on, spelling {data.decode('utf-8', 'replace')!a}{more}"

"""Which characters of a value are shown as they are, and which as tokens.

The rules are numbered as in the tests: R1 the token, R2 what is always a token, R3 no text can
spell a token, R4 the exceptions to R2, R5 marks, R6 spaces. All of them look at a bounded
number of characters around one, so a value of any shape takes time in proportion to its length.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from confirmhub.display.properties import (
    EMOJI_AS_PICTURE,
    EMOJI_AS_TEXT,
    ENCLOSING_MARK,
    ESCAPED,
    JOINS_NEXT,
    JOINS_PREVIOUS,
    KEYCAP,
    KEYCAP_BASES,
    LETTER,
    MARK,
    OVERLAYS,
    PICTURE_STYLE,
    SEQUENCE_PREFIXES,
    SEQUENCE_STARTS,
    SEQUENCES,
    SPACING_MARK,
    TEXT_STYLE,
    TRANSPARENT,
    UNASSIGNED,
    VIRAMAS,
    ZWJ,
    ZWNJ,
    kind,
)

OPEN, CLOSE = "\u27e8", "\u27e9"
TIMES = "\u00d7"

# What can be taken for the opening bracket of a token, and what makes it dangerous there.
_LIKE_OPEN = frozenset("<\uff1c\u2039\u2329\u3008\u276c\u2770\u2991\u29fc\u27ea")
_TOKEN_STARTS = ("u+", "...", "empty")
_LONGEST_START = max(map(len, _TOKEN_STARTS))

# What needs no look at its neighbours: printable ASCII but for the space and "<".
_PLAIN_ASCII = re.compile(r"[!-;=-~]+")

# UTS #39, section 5.4: more than four nonspacing marks on a base are not text.
_MOST_MARKS = 4


class Span(NamedTuple):
    """A piece `value[start:stop]`: raw text, or one run of equal characters under a token."""

    start: int
    stop: int
    escaped: bool


@dataclass(slots=True)
class _Base:
    """What marks and joiners may lean on: the last raw character that is neither."""

    char: str = ""  # empty where nothing may lean: at the start, after a space or a token
    mark: str = ""  # the last mark on it
    marks: int = 0  # how many nonspacing ones
    joins: bool = False  # only transparent marks since a letter that joins to the next

    def admits(self, mark: str) -> bool:
        """Whether a mark is drawn on this base as its own visible sign (R5)."""
        if not self.char:
            return False
        if kind(mark) == SPACING_MARK:
            return True
        if mark == self.mark or self.marks >= _MOST_MARKS:
            return False
        # An overlay strikes a character out, unless Unicode knows the result (as in U+2260).
        return mark not in OVERLAYS or len(unicodedata.normalize("NFC", self.char + mark)) == 1

    def take(self, mark: str) -> None:
        self.mark = mark
        self.marks += kind(mark) == MARK
        self.joins = self.joins and mark in TRANSPARENT


def spans(value: str) -> Iterator[Span]:
    """The whole value in pieces, in order. A token covers a run as long as possible (R1)."""
    raw = _raw(value)
    start = 0
    while start < len(value):
        stop = start + 1
        if raw[start]:
            stop = raw.find(0, start)
            stop = len(value) if stop < 0 else stop
        else:
            while stop < len(value) and not raw[stop] and value[stop] == value[start]:
                stop += 1
        yield Span(start, stop, escaped=not raw[start])
        start = stop


def written(value: str, piece: Span) -> str:
    """How a span of a value is shown (R1)."""
    start, stop, escaped = piece
    if not escaped:
        return value[start:stop]
    times = f"{TIMES}{stop - start}" if stop - start > 1 else ""
    return f"{OPEN}U+{ord(value[start]):04X}{times}{CLOSE}"


def _raw(value: str) -> bytearray:
    """One byte a character: 1 if it is shown as it is."""
    raw = bytearray(len(value))
    base = _Base()
    at = 0
    while at < len(value):
        if plain := _PLAIN_ASCII.match(value, at):
            raw[at : plain.end()] = b"\x01" * (plain.end() - at)
            at = plain.end()
            base = _Base(value[at - 1])
            continue
        char = value[at]
        if char in SEQUENCE_STARTS and (stop := _sequence_end(value, at)):
            raw[at:stop] = b"\x01" * (stop - at)
            base = _Base(value[stop - 1])
            at = stop
            continue
        previous = value[at - 1] if at and raw[at - 1] else ""
        if _leans(char):
            shown = _lean(value, at, previous, base)
        else:
            shown = _stands(value, at)
            base = _Base(char, joins=char in JOINS_NEXT) if shown and char != " " else _Base()
        if not shown:
            base = _Base()
        raw[at] = shown
        at += 1
    return raw


def _leans(char: str) -> bool:
    return char in (ZWNJ, ZWJ, TEXT_STYLE, PICTURE_STYLE) or kind(char) in (
        MARK,
        SPACING_MARK,
        ENCLOSING_MARK,
    )


def _stands(value: str, at: int) -> bool:
    """Whether a character that leans on no other is shown (R2, R3, R6)."""
    char = value[at]
    if char == " ":
        return 0 < at < len(value) - 1 and value[at - 1] != " " != value[at + 1]
    if char in _LIKE_OPEN:
        return not _spells_token(value, at + 1)
    return kind(char) < ESCAPED


def _spells_token(value: str, at: int) -> bool:
    # Up to what is not assigned: a newer Python may fold that, and it is a token anyway.
    follows = "".join(
        itertools.takewhile(lambda char: kind(char) != UNASSIGNED, value[at : at + _LONGEST_START])
    )
    return unicodedata.normalize("NFKC", follows).casefold().startswith(_TOKEN_STARTS)


def _lean(value: str, at: int, previous: str, base: _Base) -> bool:
    """Whether a mark, joiner or style selector is shown; `base` takes it if so (R4, R5)."""
    char = value[at]
    following = value[at + 1 : at + 2]
    if char == ZWNJ:
        shown = previous in VIRAMAS or (base.joins and _joined_after(value, at + 1, base))
        base.joins = False
        return shown
    if char == ZWJ:
        base.joins = False
        return previous in VIRAMAS or (previous != "" and kind(previous) == LETTER and following in VIRAMAS)
    if char == PICTURE_STYLE:
        return previous in EMOJI_AS_TEXT and (previous not in KEYCAP_BASES or following == KEYCAP)
    if char == TEXT_STYLE:
        return previous in EMOJI_AS_PICTURE
    if kind(char) == ENCLOSING_MARK:
        on = value[at - 2 : at - 1] if previous == PICTURE_STYLE else previous
        return char == KEYCAP and on in KEYCAP_BASES
    shown = base.admits(char)
    base.take(char)
    return shown


def _joined_after(value: str, at: int, base: _Base) -> bool:
    """Whether a letter that joins to the one before comes next, but for shown marks.

    RFC 5892, A.1. As no more than four marks are shown on a base, this looks no further.
    """
    ahead = _Base(base.char, base.mark, base.marks)
    for char in value[at : at + _MOST_MARKS + 1]:
        if char in JOINS_PREVIOUS:
            return True
        if kind(char) != MARK or char not in TRANSPARENT or not ahead.admits(char):
            return False
        ahead.take(char)
    return False


def _sequence_end(value: str, start: int) -> int:
    """Where the longest listed emoji sequence from `start` ends; 0 if there is none.

    The lists are compared without U+FE0F, which is let through where it would be by itself.
    """
    end, at, seen = 0, start, ""
    while at < len(value):
        char = value[at]
        if char == PICTURE_STYLE:
            if value[at - 1] not in EMOJI_AS_TEXT or at == start:
                break
        else:
            seen += char
            if seen not in SEQUENCE_PREFIXES and seen not in SEQUENCES:
                break
        at += 1
        if seen in SEQUENCES:
            end = at
    return end

"""Every code point there is, alone and between letters."""

from __future__ import annotations

from confirmhub.display import text, unshow
from confirmhub.display.properties import (
    ENCLOSING_MARK,
    ESCAPED,
    MARK,
    OVERLAYS,
    SPACING_MARK,
    UNASSIGNED,
    kind,
)

EVERY = [chr(code) for code in range(0x110000)]


def token(char: str) -> str:
    return f"\u27e8U+{ord(char):04X}\u27e9"


def test_alone_each_is_raw_or_a_token() -> None:
    for char in EVERY:
        shown = text(char)
        raw = kind(char) < MARK and char != " "
        assert shown == (char if raw else token(char)), token(char)


def test_between_letters_each_is_raw_or_a_token() -> None:
    raw = [kind(char) < ESCAPED and kind(char) != ENCLOSING_MARK and char not in OVERLAYS for char in EVERY]
    # A long value takes the same way through the rules as many short ones, and less time.
    projection = text("a" + "b".join(EVERY) + "z")

    expected = "a" + "b".join(char if shown else token(char) for char, shown in zip(EVERY, raw, strict=True))
    assert projection == expected + "z"


def test_each_is_read_back() -> None:
    # Without the two planes for private use, which would add time and nothing else.
    value = "".join(char for char in EVERY[:0xF0000] if kind(char) != UNASSIGNED)

    assert unshow(text(value)) == value


def test_after_a_space_no_mark_is_raw() -> None:
    marks = [char for char in EVERY if kind(char) in (MARK, SPACING_MARK, ENCLOSING_MARK)]

    projection = text("a" + "".join(f" {mark}b" for mark in marks))

    assert projection == "a" + "".join(f" {token(mark)}b" for mark in marks)

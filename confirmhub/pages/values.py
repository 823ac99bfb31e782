"""Values from outside, cut into what the templates draw: pieces, lines, rows of a tree.

Every text goes through `display` here. What the templates get is plain and already safe to read; they only escape it
for HTML (consent.md, HTML projection).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from confirmhub import display
from confirmhub.confirmations.actions import Json

# A path, an address, a command: each part is laid out by itself, so that right-to-left parts cannot change places.
_PARTS = re.compile(r"[/\\:.@?&=#,; ]+|[^/\\:.@?&=#,; ]+")
_TITLES_NAMED = 4
_DEEPEST_INDENT = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text to draw: a mark (with a title), a part to be isolated, or plain text."""

    text: str
    title: str = ""
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A flag, in words. `level` is `info` or `warn`."""

    level: str
    message: str


@dataclass(frozen=True, slots=True)
class Value:
    """One text, ready to draw: on one line (`pieces`), or on numbered lines (`lines`) where it has line breaks."""

    pieces: tuple[Piece, ...]
    lines: tuple[tuple[Piece, ...], ...]
    notes: tuple[Note, ...]
    exact: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an argument tree, in the order that is stored. `depth` is how far to indent it."""

    key: Value | None
    position: int | None
    kind: str
    value: Value | None
    level: int
    depth: int


def value(raw: str) -> Value:
    """Prepare one untrusted text."""
    shown = display.show(raw)
    plain = shown.text == raw and not shown.flags
    lines = tuple(_line(line) for line in raw.split("\n")) if "\n" in raw else ()
    return Value(
        pieces=() if lines else tuple(_pieces(shown)),
        lines=lines,
        notes=tuple(_notes(shown, lines_are_drawn=bool(lines))),
        exact="" if plain else ascii(raw),
        fingerprint="" if plain else _fingerprint(raw),
    )


def rows(items: list[tuple[str, Json]]) -> list[Row]:
    """Flatten arguments into rows: each key, its JSON type in words, and its value."""
    return list(_walk(items))


def texts(items: list[tuple[str, Json]]) -> list[str]:
    """Every key and every value of arguments as raw text, to search in. Never to show."""
    found: list[str] = []
    stack: list[Json] = [dict(items)]
    while stack:
        match stack.pop():
            case dict() as group:
                found += group
                stack += group.values()
            case list() as several:
                stack += several
            case leaf:
                found.append(_describe(leaf)[1] or "")
    return found


def digest_head(digest: bytes | memoryview | None) -> str:
    """The first 8 hex digits in two groups, for people to compare; empty where there is no digest."""
    head = bytes(digest or b"").hex()[:8]
    return f"{head[:4]} {head[4:]}" if head else ""


def _walk(items: list[tuple[str, Json]]) -> Iterator[Row]:
    # A list as the stack, since arguments may nest deeper than Python likes to recurse.
    stack: list[tuple[str | None, int | None, Json, int]] = [
        (key, None, item, 0) for key, item in reversed(items)
    ]
    while stack:
        key, position, item, level = stack.pop()
        kind, text = _describe(item)
        yield Row(
            key=None if key is None else value(key),
            position=position,
            kind=kind,
            value=None if text is None else value(text),
            level=level,
            depth=min(level, _DEEPEST_INDENT),
        )
        if isinstance(item, dict):
            stack += [(name, None, child, level + 1) for name, child in reversed(item.items())]
        elif isinstance(item, list):
            numbered = list(enumerate(item, start=1))
            stack += [(None, number, child, level + 1) for number, child in reversed(numbered)]


def _describe(item: Json) -> tuple[str, str | None]:
    match item:
        case None:
            return "nothing", "null"
        case bool():
            return "true or false", "true" if item else "false"
        case str():
            return "text", item
        case dict():
            return _count(len(item), "a group of one", "a group of {}", "an empty group"), None
        case list():
            return _count(len(item), "a list of one", "a list of {}", "an empty list"), None
        case Decimal():
            return "number", str(item)
        case _:
            return "number", json.dumps(item)


def _count(number: int, one: str, many: str, none: str) -> str:
    return none if number == 0 else one if number == 1 else many.format(number)


def _pieces(shown: display.Shown) -> Iterator[Piece]:
    for part in shown.parts:
        if part.title:
            yield Piece(part.text, title=part.title)
        elif part.text.isascii():
            yield Piece(part.text)
        else:
            yield from _split(part.text)


def _line(text: str) -> tuple[Piece, ...]:
    # The number in front of it says that an empty line is there; it needs no mark.
    return tuple(_pieces(display.show(text))) if text else ()


def _split(text: str) -> Iterator[Piece]:
    plain = ""
    for match in _PARTS.finditer(text):
        if match[0].isascii():
            plain += match[0]
            continue
        if plain:
            yield Piece(plain)
            plain = ""
        yield Piece(match[0], alone=True)
    if plain:
        yield Piece(plain)


def _notes(shown: display.Shown, *, lines_are_drawn: bool) -> Iterator[Note]:
    marks = [part for part in shown.parts if part.title and not _harmless(part, lines_are_drawn=lines_are_drawn)]
    if marks:
        names = list(dict.fromkeys(f"{mark.text.strip('⟨⟩')} {mark.title}" for mark in marks))
        listed = "; ".join(names[:_TITLES_NAMED]) + ("; and others" if len(names) > _TITLES_NAMED else "")
        held = "1 character" if len(marks) == 1 else f"{len(marks)} characters"
        yield Note("warn", f"Holds {held} that would not be seen, shown as marks: {listed}.")
    for flag in shown.flags:
        yield Note(flag.level, flag.message)


def _harmless(part: display.Part, *, lines_are_drawn: bool) -> bool:
    return part.text == "⟨empty⟩" or (lines_are_drawn and part.text.startswith("⟨U+000A"))


def _fingerprint(raw: str) -> str:
    # Lone surrogates are accepted in values, and have no UTF-8 without this.
    head = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{head[:4]} {head[4:]}"

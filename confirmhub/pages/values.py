"""Values from outside, cut into what the templates draw: pieces, lines, rows of a tree.

Every text goes through `display` here. What the templates get is plain and fit to be read; all that they do
to it is to escape it for HTML.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from confirmhub import display
from confirmhub.confirmations.actions import Json

_DEEPEST_INDENT = 4
_NOTES_BY_LINE = 8
_BRIEF = 200  # characters of a former value
_GIST = 80  # characters of a key or a value in a row of a list
_GIST_ITEMS = 3  # arguments in a row of a list
_SHORT = 100  # characters of a text that is worth keeping prepared
_EMPTY = display.text("")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text to draw. One that stands `alone` is laid out by itself, as right-to-left text must be."""

    parts: tuple[display.Part, ...]
    alone: bool


@dataclass(frozen=True, slots=True)
class Note:
    """A flag, in words."""

    level: display.Level
    message: str


@dataclass(frozen=True, slots=True)
class Value:
    """One text, ready to draw: on one line (`pieces`), and, where it has line feeds, on numbered `lines`."""

    pieces: tuple[Piece, ...]
    lines: tuple[tuple[Piece, ...], ...]
    notes: tuple[Note, ...]
    exact: str
    fingerprint: str

    @property
    def loud(self) -> tuple[Note, ...]:
        """The notes that stand under the text; the quiet ones stand with its exact form."""
        return tuple(note for note in self.notes if note.level != "quiet")

    @property
    def quiet(self) -> tuple[Note, ...]:
        """The notes of typographic signs: there, so that no two values look alike without a word of it."""
        return tuple(note for note in self.notes if note.level == "quiet")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an argument tree, in the order that is stored. `depth` is how far to indent it."""

    key: Value | None
    position: int | None
    kind: str
    value: Value | None
    level: int
    depth: int
    news: str = ""
    """How it differs from last time: `new`, `changed`, or empty."""
    was: Value | None = None

    @property
    def simple(self) -> bool:
        """Nothing but one line to draw."""
        return self.value is not None and not (self.value.lines or self.value.notes or self.value.exact)


@dataclass(frozen=True, slots=True)
class Gone:
    """An argument that was there last time."""

    key: Value
    was: Value


@dataclass(frozen=True, slots=True)
class Gist:
    """The first arguments on one line, long ones cut visibly, and how many more there are."""

    items: tuple[tuple[Value, Value], ...]
    more: int


def value(raw: str) -> Value:
    """Prepare one untrusted text."""
    return _prepare_short(raw) if len(raw) <= _SHORT else _prepare(raw)


def line(raw: str) -> Value:
    """Prepare one untrusted text that is drawn on one line whatever it holds, as keys are."""
    if "\n" not in raw:
        return value(raw)
    shown = display.show(raw)
    return Value(_pieces(shown), (), _notes(shown), ascii(raw), _fingerprint(raw))


def rows(items: list[tuple[str, Json]]) -> list[Row]:
    """Flatten arguments into rows: each key, its JSON type in words, and its value."""
    return list(_walk(items))


def compared(
    items: list[tuple[str, Json]], *, before: list[tuple[str, Json]]
) -> tuple[list[Row], list[Gone]]:
    """The rows, with what differs from the arguments `before`; and those that are there no more.

    One argument is compared with another as JSON, so that 1, 1.0 and "1" differ.
    """
    then, now = dict(before), dict(items)
    marked: list[Row] = []
    for row, key in _with_keys(items):
        if key is None or (key in then and _same(then[key], now[key])):
            marked.append(row)
        elif key in then:
            marked.append(replace(row, news="changed", was=_brief(then[key], _BRIEF)))
        else:
            marked.append(replace(row, news="new"))
    return marked, [Gone(line(key), _brief(item, _BRIEF)) for key, item in before if key not in now]


# To cut a value, all of it is rendered, which of large ones takes a while. Those who look at their lists
# again and again must not wait for what an agent has filled them with.
@lru_cache(maxsize=256)
def gist(arguments: str) -> Gist:
    """What a row of a list shows of arguments, given as their canonical text."""
    items: list[tuple[str, Json]] = list(json.loads(arguments).items())
    first = tuple((_brief(key, _GIST), _brief(item, _GIST)) for key, item in items[:_GIST_ITEMS])
    return Gist(first, max(0, len(items) - _GIST_ITEMS))


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


def _prepare(raw: str) -> Value:
    shown = display.show(raw)
    plain = shown.text == raw and not shown.flags
    several = display.lines(raw) if "\n" in raw else ()
    return Value(
        pieces=_pieces(shown),
        lines=tuple(_line(line) for line in several),
        notes=_notes_by_line(several) if several else _notes(shown),
        exact="" if plain else ascii(raw),
        fingerprint="" if plain else _fingerprint(raw),
    )


# Keys, names and hosts come again and again, on one page and on the next.
_prepare_short = lru_cache(maxsize=2048)(_prepare)


def _with_keys(items: list[tuple[str, Json]]) -> Iterator[tuple[Row, str | None]]:
    """The rows, each with the name of the argument that begins there."""
    keys = iter(items)
    for row in _walk(items):
        yield row, next(keys)[0] if row.level == 0 else None


def _same(one: Json, other: Json) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _brief(item: Json, limit: int) -> Value:
    """A text on one line, cut visibly where it is long: the new one stands whole on the page."""
    raw = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    if len(display.text(raw)) <= limit:
        return line(raw)
    return Value((Piece((display.Part(display.short(raw, limit)),), alone=True),), (), (), "", "")


def _walk(items: list[tuple[str, Json]]) -> Iterator[Row]:
    # A list as the stack, since arguments may nest deeper than Python likes to recurse.
    stack: list[tuple[str | None, int | None, Json, int]] = [
        (key, None, item, 0) for key, item in reversed(items)
    ]
    while stack:
        key, position, item, level = stack.pop()
        kind, text = _describe(item)
        yield Row(
            key=None if key is None else line(key),
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
    """The JSON type in words, and the value as text where it is one value."""
    if item is None or isinstance(item, bool):
        return ("nothing" if item is None else "true or false"), json.dumps(item)
    if isinstance(item, str):
        return "text", item
    if isinstance(item, dict):
        return _count(len(item), "a group of one", "a group of {}", "an empty group"), None
    if isinstance(item, list):
        return _count(len(item), "a list of one", "a list of {}", "an empty list"), None
    return "number", json.dumps(item)


def _count(number: int, one: str, many: str, none: str) -> str:
    return none if number == 0 else one if number == 1 else many.format(number)


def _pieces(shown: display.Shown) -> tuple[Piece, ...]:
    if all(part.title or part.text.isascii() for part in shown.parts):
        return (Piece(shown.parts, alone=False),) if shown.parts else ()
    return tuple(
        Piece(parts, alone=any(not part.title and not part.text.isascii() for part in parts))
        for parts in shown.pieces
    )


def _line(shown: display.Shown) -> tuple[Piece, ...]:
    # The number in front of it says that an empty line is there; it needs no mark.
    return () if shown.text == _EMPTY else _pieces(shown)


def _notes(shown: display.Shown) -> tuple[Note, ...]:
    return tuple(Note(flag.level, flag.message) for flag in shown.flags)


def _notes_by_line(lines: tuple[display.Shown, ...]) -> tuple[Note, ...]:
    # By line, since on numbered lines the line feeds are what they look like and need no words.
    notes = [
        Note(flag.level, f"Line {number}: {flag.message}")
        for number, line in enumerate(lines, start=1)
        for flag in line.flags
        if line.text != _EMPTY
    ]
    notes.sort(key=lambda note: display.LOUDNESS.index(note.level))
    if len(notes) <= _NOTES_BY_LINE:
        return tuple(notes)
    hidden = notes[_NOTES_BY_LINE:]
    level = hidden[0].level
    return (*notes[:_NOTES_BY_LINE], Note(level, f"And {len(hidden)} more such remarks on other lines."))


def _fingerprint(raw: str) -> str:
    # Lone surrogates are accepted in values, and have no UTF-8 without this.
    head = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{head[:4]} {head[4:]}"

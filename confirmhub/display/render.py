"""Untrusted text, made fit for a person to decide on.

Nothing is deleted, replaced or normalized. What has no sign of its own is shown as a token in
brackets that no text can spell, so that two values never look alike because of what is hidden,
and `unshow` gets the value back.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from confirmhub.display.flags import Flag, find_remarks
from confirmhub.display.graphemes import divides
from confirmhub.display.names import named
from confirmhub.display.properties import CONFUSABLES_VERSION, UNICODE_VERSION
from confirmhub.display.spans import CLOSE, OPEN, TIMES, Span, spans, written

VERSION = f"display 1, Unicode {UNICODE_VERSION}, confusables {CONFUSABLES_VERSION}"
"""What decides how values are shown. Part of the digest of what a person saw, so a change of
any text or flag must change it."""

EMPTY = f"{OPEN}empty{CLOSE}"

_TOKEN = re.compile(
    rf"{OPEN}(?:U\+(?P<code>[0-9A-F]{{4,6}})(?:{TIMES}(?P<count>[1-9][0-9]{{0,6}}))?|empty){CLOSE}"
)
# Most values: words of ASCII, a space between two.
_PLAIN = re.compile(r"[!-;=-~]+(?: [!-;=-~]+)*+")
# Where the parts of paths, URLs, addresses, commands and lists meet.
_SEPARATOR = re.compile(r"([/\\:.@?&=#,; ]+)")


@dataclass(frozen=True, slots=True)
class Part:
    """Text to show in one style."""

    text: str
    title: str | None = None
    """Set for tokens only, which must look like nothing a value can hold: what it stands for."""
    poses: str | None = None
    """Set for text that looks like what it is not, to be marked where it stands: what it is."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A value as it is shown."""

    parts: tuple[Part, ...]
    flags: tuple[Flag, ...]

    @property
    def text(self) -> str:
        """The text projection."""
        return "".join(part.text for part in self.parts)

    @property
    def pieces(self) -> tuple[tuple[Part, ...], ...]:
        """The parts, grouped for values with a structure, such as paths and commands.

        Each piece, be it a name or the separators between two, is to be isolated from its
        neighbours (`<bdi>`), so that names written from right to left do not change places.
        """
        return tuple(_pieces(self.parts))


def text(value: str) -> str:
    """The value on one line, as everywhere where there is only text."""
    if _PLAIN.fullmatch(value):
        return value
    return "".join(written(value, piece) for piece in spans(value)) or EMPTY


def show(value: str) -> Shown:
    """The value on one line, with what a page needs to tell more about it."""
    pieces = list(spans(value))
    remarks = find_remarks(value, pieces)
    return Shown(tuple(_parts(value, pieces, remarks.posing)), remarks.flags)


def lines(value: str) -> tuple[Shown, ...]:
    """The lines of a longer value, to be numbered. Only LF divides lines."""
    return tuple(show(line) for line in value.split("\n"))


def unshow(projection: str) -> str:
    """The value that `text` made the projection of.

    Raises:
        ValueError: It is no projection. So is what `short` has cut.
    """
    value = _TOKEN.sub(_meant, projection)
    if text(value) != projection:
        raise ValueError("This is not the text projection of any value.")
    return value


def _parts(value: str, pieces: Iterable[Span], posing: frozenset[int]) -> Iterator[Part]:
    if not value:
        yield Part(EMPTY, "text of no characters")
    for piece in pieces:
        if piece.escaped:
            count = piece.stop - piece.start
            title = named(value[piece.start]) + (f", {count} times" if count > 1 else "")
            yield Part(written(value, piece), title)
        elif posing:
            yield from _marked(value, piece, posing)
        else:
            yield Part(written(value, piece))


def _marked(value: str, piece: Span, posing: frozenset[int]) -> Iterator[Part]:
    """Raw text, parted where what poses begins and ends: whole graphemes, neighbours together."""
    borders = [at for at in range(piece.start + 1, piece.stop) if divides(value[at - 1], value[at])]
    graphemes = itertools.starmap(range, itertools.pairwise([piece.start, *borders, piece.stop]))
    for poses, run in itertools.groupby(graphemes, lambda grapheme: not posing.isdisjoint(grapheme)):
        places = [at for grapheme in run for at in grapheme]
        title = named(value[next(at for at in places if at in posing)]) if poses else None
        yield Part(value[places[0] : places[-1] + 1], poses=title)


def _meant(match: re.Match[str]) -> str:
    if match["code"] is None:
        return ""
    code = int(match["code"], 16)
    if code > sys.maxunicode:
        raise ValueError("A token names no code point.")
    return chr(code) * int(match["count"] or 1)


def _pieces(parts: Iterable[Part]) -> Iterator[tuple[Part, ...]]:
    piece: list[Part] = []
    separates = False  # whether the piece is separators only
    last = ""
    for part in parts:
        runs = [part.text] if part.title is not None else _SEPARATOR.split(part.text)
        for number, run in enumerate(runs):
            if not run:
                continue
            separator = number % 2 == 1  # `split` puts what it split at between the rest
            if piece and separator != separates and divides(last, run[0]):
                yield tuple(piece)
                piece = []
            if not piece:
                separates = separator
            piece.append(Part(run, part.title, part.poses))
            last = run[-1]
    if piece:
        yield tuple(piece)

"""What a person should know about a value beyond its text, in plain words.

A flag informs ("info": usual in some languages, but the eye cannot tell) or warns ("warn":
ordinary text has no use for it). A warning that is wrong teaches people to pass over warnings,
so what ordinary text of any language holds stays at "info", and what prose is full of at "quiet".
Messages are ASCII, bounded, and never hold the value itself, so that nothing in a value can disturb
them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from confirmhub.display import hidden, words
from confirmhub.display.finds import LOUDNESS, Find, Level
from confirmhub.display.names import named
from confirmhub.display.properties import PICTURE_STYLE, TEXT_STYLE, TYPOGRAPHY, ZWJ, ZWNJ
from confirmhub.display.spans import Span

# A message names this many finds and counts the rest.
_EXAMPLES = 3

# What one find of a kind is called, and several.
_WORDING = {
    "bidi": (
        "hidden character that turns the order of the text around",
        "hidden characters that turn the order of the text around",
    ),
    "hidden-text": ("hidden character that spells text", "hidden characters that spell text"),
    "invisible": ("invisible character", "invisible characters"),
    "blank": ("character drawn as a blank", "characters drawn as blanks"),
    "terminal": (
        "control character that can change what a terminal shows",
        "control characters that can change what a terminal shows",
    ),
    "control": ("control character", "control characters"),
    "line-break": ("line break", "line breaks"),
    "space": (
        "space at an end, in a row or of an unusual kind",
        "spaces at an end, in a row or of an unusual kind",
    ),
    "mark": ("accent on nothing, or one too many", "accents on nothing, or too many"),
    "bracket": (
        "bracket that could be taken for one of this page's",
        "brackets that could be taken for ones of this page",
    ),
    "undecodable": ("piece of broken text encoding", "pieces of broken text encoding"),
    "private": ("private use character", "private use characters"),
    "unassigned": ("character without a meaning so far", "characters without a meaning so far"),
    "mixed-script": ("word of letters from several scripts", "words of letters from several scripts"),
    "looks-ascii": ("look-alike of plain ASCII text", "look-alikes of plain ASCII text"),
    "twin": ("character with a look-alike", "characters with look-alikes"),
    "mixed-digits": (
        "number of digits from several scripts",
        "numbers of digits from several scripts",
    ),
    "digits": ("number in another script's digits", "numbers in another script's digits"),
    "compat": ("styled form of another character", "styled forms of other characters"),
    "joiner": (
        "invisible joiner that shapes what is beside it",
        "invisible joiners that shape what is beside them",
    ),
    "selector": (
        "invisible selector of picture or text style",
        "invisible selectors of picture or text style",
    ),
}
_STYLING = {ZWNJ: "joiner", ZWJ: "joiner", TEXT_STYLE: "selector", PICTURE_STYLE: "selector"}


@dataclass(frozen=True, slots=True)
class Flag:
    """One remark about a value, for people."""

    code: str
    level: Level
    message: str


class Remarks(NamedTuple):
    """What there is to say of a value, and where to mark it."""

    flags: tuple[Flag, ...]
    posing: frozenset[int]
    """The indices of the characters that a warning calls other than they look."""


def find_remarks(value: str, pieces: Sequence[Span]) -> Remarks:
    """Every remark about a value, the loudest first. `pieces` are the spans of the value."""
    # There is nothing to say of ASCII that is shown as it is.
    shown = [piece for piece in pieces if not piece.escaped and not value[piece.start : piece.stop].isascii()]
    finds = [*hidden.find(value, pieces), *words.find(value, shown), *_styled(value, shown)]
    groups: dict[tuple[str, Level], list[Find]] = {}
    for find in finds:
        groups.setdefault((find.code, find.level), []).append(find)
    flags = [Flag(code, level, _message(found)) for (code, level), found in groups.items()]
    flags += _as_a_whole(value, shown)
    flags.sort(key=lambda flag: LOUDNESS.index(flag.level))
    posing = frozenset(at for find in finds if find.level == "warn" for at in find.posing)
    return Remarks(tuple(flags), posing)


def _message(finds: Sequence[Find]) -> str:
    count = sum(find.count for find in finds)
    one, several = _WORDING[finds[0].code]
    # Each description once, where it comes first.
    first = {find.what: find.at for find in reversed(finds)}
    examples = sorted(first.items(), key=lambda example: example[1])
    told = "; ".join(f"{what}, at character {at + 1}" for what, at in examples[:_EXAMPLES])
    more = len(examples) - _EXAMPLES
    return f"{count} {one if count == 1 else several}: {told}" + (
        f"; and {more} more kinds." if more > 0 else "."
    )


def _styled(value: str, shown: Sequence[Span]) -> Iterator[Find]:
    for at in _places(shown):
        char = value[at]
        if char in _STYLING:
            yield Find(_STYLING[char], "info", at, named(char))
        elif _is_compatibility(char):
            plain = unicodedata.normalize("NFKC", char)
            reads = f', reads as "{plain}"' if plain.isascii() and plain.isprintable() else ""
            yield Find("compat", "quiet" if char in TYPOGRAPHY else "info", at, named(char) + reads)


def _as_a_whole(value: str, shown: Sequence[Span]) -> Iterator[Flag]:
    if any(unicodedata.bidirectional(value[at]) in ("R", "AL") for at in _places(shown)):
        yield Flag("rtl", "info", "Parts of this are written from right to left.")
    if not all(unicodedata.is_normalized("NFC", value[piece.start : piece.stop]) for piece in shown):
        yield Flag(
            "not-nfc",
            "info",
            "Some characters have another spelling (not in Unicode form NFC): "
            "a value that looks the same need not be the same.",
        )


def _places(shown: Sequence[Span]) -> Iterator[int]:
    for piece in shown:
        yield from range(piece.start, piece.stop)


@lru_cache(maxsize=4096)
def _is_compatibility(char: str) -> bool:
    return unicodedata.normalize("NFKC", char) != unicodedata.normalize("NFC", char)

"""Words and signs that are not what they look like: mixed scripts, look-alikes, digits."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from confirmhub.display import twins
from confirmhub.display.finds import Find, Level
from confirmhub.display.names import named
from confirmhub.display.properties import (
    EMOJI_AS_PICTURE,
    EMOJI_AS_TEXT,
    LOOKALIKES,
    TYPOGRAPHY,
    scripts_of,
)
from confirmhub.display.spans import Span

# UTS #39, section 5.1: writing systems that are made of several scripts.
_SYSTEMS = {
    "Han": frozenset({"Japanese", "Korean", "Han with Bopomofo"}),
    "Hiragana": frozenset({"Japanese"}),
    "Katakana": frozenset({"Japanese"}),
    "Hangul": frozenset({"Korean"}),
    "Bopomofo": frozenset({"Han with Bopomofo"}),
}
_EAST_ASIAN = frozenset(_SYSTEMS).union(*_SYSTEMS.values())
# Written without spaces between words, so that a Latin word stands right beside.
_UNSPACED = _EAST_ASIAN | {
    *("Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Javanese", "Balinese"),
    *("Tai Le", "New Tai Lue", "Tai Tham"),
}

# Signs of ASCII syntax, and what prose uses in spite of looking like one.
_SYNTAX = frozenset("/\\-:;*~=<>,`")
_PROSE = TYPOGRAPHY | {"\u2012"}  # the figure dash
# Wide forms of ASCII syntax, and two more full stops that divide the parts of a domain name
# (RFC 3490, section 3.1). Usual in the scripts that they are made for, and nowhere else.
_WIDE = {
    **{chr(0xFF00 + ord(sign) - 0x20): sign for sign in "/\\;&|$<>.~=-*`"},
    "\u3002": ".",
    "\uff61": ".",
}
# What stands singly between the digits of a number, in ASCII.
_SEPARATES = {".": ".", ",": ",", "'": "'", "_": "_", "\u2019": "'", "\u066b": ".", "\u066c": ","}
# The letters of the national Latin alphabets end here (Latin Extended-A).
_LATIN_ALPHABETS = "\u017f"
# Words of fewer letters look like ASCII by chance in many languages.
_CHOSEN = 4
# How many scripts of a word a message names.
_MOST_SCRIPTS = 3
# The longest word that a message reads out, in characters.
_MOST_READ = 40

_ASCII_LETTER = re.compile(r"[A-Za-z]")
_CHUNK = re.compile(r"[^ ]+")


def find(value: str, shown: Sequence[Span]) -> Iterator[Find]:
    """What there is to tell of raw text. `shown` are the spans of it that are not ASCII."""
    at_home = _scripts_seen(value, shown)
    for piece in shown:
        for chunk in _CHUNK.finditer(value, piece.start, piece.stop):
            if not chunk.group().isascii():
                places = range(*chunk.span())
                # What is told already is not told again in fewer words.
                yield from list(_find_in_chunk(value, places, at_home)) or twins.find(value, places)


def _scripts_seen(value: str, shown: Sequence[Span]) -> frozenset[str]:
    """The scripts of the digits, and of the letters that look like nothing but themselves.

    A look-alike among them is at home: the Cyrillic "c" in a Russian sentence.
    """
    seen: set[str] = set()
    for char in {char for piece in shown for char in value[piece.start : piece.stop]}:
        if not char.isascii() and (char.isdecimal() or (_in_word(char) == "L" and _look(char) is None)):
            seen |= scripts_of(char)
    return frozenset(seen)


def _find_in_chunk(value: str, chunk: range, at_home: frozenset[str]) -> Iterator[Find]:
    for at in chunk:
        char = value[at]
        if char in LOOKALIKES and not _in_word(char):
            what = f"{named(char)} looks like {_read(LOOKALIKES[char])}"
            level = "quiet" if _is_typography(value, at) else _level(char, at_home)
            yield Find("looks-ascii", level, at, what, posing=(at,))
        elif char in _WIDE and not at_home & _EAST_ASIAN:
            what = f"{named(char)} looks like {_read(_WIDE[char])}"
            yield Find("looks-ascii", "warn", at, what, posing=(at,))
    beside_ascii = _ASCII_LETTER.search(value, chunk.start, chunk.stop) is not None
    for word in _runs(chunk, lambda at: _in_word(value[at]) != ""):
        # In a name or an address, a longer word that reads as ASCII was chosen because it does.
        chosen = beside_ascii and len(word) >= _CHOSEN
        yield from _find_in_word(value, word, frozenset() if chosen else at_home)
    for number in _numbers(value, chunk):
        yield from _find_in_number(value, number)


def _is_typography(value: str, at: int) -> bool:
    """Whether a sign is one that prose is set with. What looks like a letter is none beside letters."""
    char = value[at]
    if char not in TYPOGRAPHY:
        return False
    beside_letters = _ASCII_LETTER.search(value, max(0, at - 1), at + 2) is not None
    return not (LOOKALIKES[char].isalpha() and beside_letters)


def _level(char: str, at_home: frozenset[str]) -> Level:
    scripts = scripts_of(char)
    if scripts:
        usual = bool(scripts & at_home) or (scripts == {"Latin"} and char <= _LATIN_ALPHABETS)
    else:
        poses = LOOKALIKES[char] in _SYNTAX and unicodedata.category(char) != "Lm"
        usual = not poses or char in _PROSE or char in EMOJI_AS_TEXT or char in EMOJI_AS_PICTURE
    return "info" if usual else "warn"


def _find_in_word(value: str, word: range, at_home: frozenset[str]) -> Iterator[Find]:
    text = value[word.start : word.stop]
    if text.isascii():
        return
    mixture = _find_mixture(text, word.start)
    looks = [_look(char) for char in text]
    alike = [(at, char) for at, char in zip(word, text, strict=True) if char in LOOKALIKES]
    # A number of such digits is told with its value.
    if not alike or None in looks or text.isdecimal():
        if mixture:
            yield mixture
        return
    reading = "".join(look for look in looks if look is not None)
    told = f" in a word that reads as {_read(reading)}" if len(reading) <= _MOST_READ else ""
    if mixture:  # one word, one remark
        places = {*mixture.posing, *(at for at, _ in alike)}
        yield replace(mixture, what=mixture.what + told, posing=tuple(sorted(places)))
        return
    latin = _ASCII_LETTER.search(text) is not None
    posing = tuple(
        at
        for at, char in alike
        # Beside ASCII letters, no letter of another script is at home.
        if (latin and scripts_of(char) - {"Latin"}) or _level(char, at_home) == "warn"
    )
    at, char = alike[0]
    yield Find("looks-ascii", "warn" if posing else "info", at, named(char) + told, posing=posing)


def _find_mixture(text: str, start: int) -> Find | None:
    """UTS #39, section 5.2, highly restrictive; besides, Latin beside unspaced scripts."""
    sets = [(at, _augmented(char)) for at, char in enumerate(text, start) if scripts_of(char)]
    if not sets or _shared(scripts for _, scripts in sets):
        return None
    others = [(at, scripts) for at, scripts in sets if "Latin" not in scripts]
    rest = _shared(scripts for _, scripts in others) if len(others) < len(sets) else frozenset()
    if rest & _UNSPACED:
        return None
    # Greek letters name units and variables; those that look like Latin ones are another matter.
    formula = "Greek" in rest and all(_look(text[at - start]) is None for at, _ in others)
    # Without one script in all sets, not all have the same first one.
    names = sorted({min(scripts) for _, scripts in sets})
    at = others[0][0]
    what = f"{' and '.join(names[:_MOST_SCRIPTS])}, {named(text[at - start])}"
    # Of two scripts, the rarer one is where the eye is to look.
    latin = [(at, scripts) for at, scripts in sets if "Latin" in scripts]
    rare = min(others, latin or others, key=len)
    return Find(
        "mixed-script", "info" if formula else "warn", at, what, posing=tuple(place for place, _ in rare)
    )


def _find_in_number(value: str, number: range) -> Iterator[Find]:
    digits = [(at, value[at]) for at in number if value[at].isdecimal()]
    foreign = [(at, digit) for at, digit in digits if not digit.isascii()]
    if not foreign:
        return
    at, digit = foreign[0]
    if len({ord(digit) - unicodedata.decimal(digit) for _, digit in digits}) > 1:
        yield Find("mixed-digits", "warn", at, named(digit), posing=tuple(place for place, _ in foreign))
    else:
        reading = "".join(str(unicodedata.decimal(value[at], _SEPARATES.get(value[at]))) for at in number)
        told = f", read as {reading}" if len(reading) <= _MOST_READ else ""
        yield Find("digits", "info", at, named(digit) + told)


def _numbers(value: str, chunk: range) -> Iterator[range]:
    """The maximal runs of digits, with what stands singly between two of them."""

    def belongs(at: int) -> bool:
        return value[at].isdecimal() or (
            value[at] in _SEPARATES
            and at - 1 in chunk
            and at + 1 in chunk
            and value[at - 1].isdecimal()
            and value[at + 1].isdecimal()
        )

    yield from _runs(chunk, belongs)


def _runs(chunk: range, belongs: Callable[[int], bool]) -> Iterator[range]:
    for wanted, places in itertools.groupby(chunk, belongs):
        if wanted:
            run = list(places)
            yield range(run[0], run[-1] + 1)


def _shared(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset.intersection(*sets)


@lru_cache(maxsize=4096)
def _augmented(char: str) -> frozenset[str]:
    scripts = scripts_of(char)
    return scripts.union(*(_SYSTEMS.get(script, frozenset()) for script in scripts))


@lru_cache(maxsize=4096)
def _in_word(char: str) -> str:
    """L, M or N for what words are made of, else nothing."""
    major = unicodedata.category(char)[0]
    return major if major in "LMN" else ""


@lru_cache(maxsize=4096)
def _look(char: str) -> str | None:
    """The ASCII text that a character is or looks like, if any."""
    if char in LOOKALIKES:
        return LOOKALIKES[char]
    plain = unicodedata.normalize("NFKC", char)
    return plain if plain.isascii() else None


def _read(look: str) -> str:
    """ASCII text in quotes. The prototypes of UTS #39 are one for several look-alikes."""
    return {"l": '"l", "I" or "1"', "O": '"O" or "0"', "''": "'\"'"}.get(look, f'"{look}"')

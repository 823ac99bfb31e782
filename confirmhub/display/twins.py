"""Characters that others look like: at each place, all but one of these are told of.

Two values that look alike (UTS #39, section 4: their skeletons are equal) and hold no token differ
first at some place. There the two characters look alike, or one of them looks like a sequence in
the other value. Which of the look-alikes is not told of is settled by what is the same in both: the
scripts that the word can be written in, or the nearest letter that looks like no other. So one of
two such values is told of, in any case. What ASCII characters are to each other ("l" and "1", "O"
and "0", "rn" and "m") is left to the font, and so are the blocks of Hangul.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from confirmhub.display.finds import Find
from confirmhub.display.names import named
from confirmhub.display.properties import PROTOTYPES, RARE, TWINS, scripts_of

_LONGEST = max(map(len, TWINS))
# Everyday letters that look like ASCII sequences. Where the sequence stood in their place, it would
# be of letters that are told of, or beside letters of another script.
_EVERYDAY = frozenset("\u042b\u042e\u044e")
# The scripts that a word is first thought to be in, if it can be.
_ORDER = ("Latin", "Cyrillic", "Greek", "Arabic", "Devanagari", "Thai", "Han")

_KATAKANA = "Katakana"
_UNSPACED = frozenset({"Han", "Hiragana", _KATAKANA, "Bopomofo"})

type Scripts = frozenset[str]
_ANY: Scripts = frozenset()


class _Word(NamedTuple):
    """A word, or what stands between two."""

    places: range
    homes: Sequence[Scripts]
    """For each place, the scripts that are at home there; none if all are."""

    possible: Scripts | None
    """The scripts that all of it can be in; None if nothing in it is of a script."""


def find(value: str, chunk: range) -> Iterator[Find]:
    """What there is to tell of raw text without spaces."""
    if not unicodedata.is_normalized("NFC", value[chunk.start : chunk.stop]):
        return  # which is told of the value as a whole
    for word in _words(value, chunk):
        for at, home in zip(word.places, word.homes, strict=True):
            if what := _tell(value, at, chunk, word, home):
                yield Find("twin", "info", at, f"{named(value[at])} {what}")


def _tell(value: str, at: int, chunk: range, word: _Word, home: Scripts) -> str:
    char, look = value[at], _look(value[at])
    if looks := _sequence_at(value, at, chunk.stop, word.possible):
        return f"begins what looks like {named(looks)}"
    before = _look(value[at - 1])[-1] if at > chunk.start else ""
    if before and 0 < unicodedata.combining(look[0]) < unicodedata.combining(before):
        return "looks the same in another order"
    spelled = _spelled(look)
    if spelled & (word.possible or _ANY) and not spelled & scripts_of(char):
        return "looks like several letters of another script"
    usual = _usual(look, home)
    if char == usual or char in _EVERYDAY or (char + usual).isascii():
        return ""
    return "looks like " + (f'"{usual}"' if usual.isascii() else named(usual))


def _words(value: str, chunk: range) -> Iterator[_Word]:
    for in_word, group in itertools.groupby(chunk, lambda at: _in_word(_look(value[at]))):
        run = list(group)
        places = range(run[0], run[-1] + 1)
        if not in_word:
            yield _Word(places, [_ANY] * len(run), None)
            continue
        sets = [frozenset(scripts) for at in run if (scripts := _ranks(_look(value[at])))]
        possible = frozenset.intersection(*sets) if sets else None
        if possible:
            ranks = [ranks for at in run if (ranks := _ranks(_look(value[at])))]
            home = min(possible, key=lambda script: (max(rank[script] for rank in ranks), _order(script)))
            yield _Word(places, [frozenset({home})] * len(run), possible)
        else:
            yield _Word(places, list(_nearest(value, run)), possible)


def _nearest(value: str, run: Sequence[int]) -> Iterator[Scripts]:
    """For each place, the scripts of the nearest letter that looks like no other.

    What can be read as Katakana, and stands beside some that can be read as nothing else, is read so.
    """
    clear = [_ANY if len(_alike(_look(value[at]))) > 1 else scripts_of(value[at]) for at in run]
    after = reversed(list(_last(clear[::-1])))
    homes = [
        last | following if since == until else last if since < until else following
        for (since, last), (until, following) in zip(_last(clear), after, strict=True)
    ]
    for kana, group in itertools.groupby(
        range(len(run)), lambda at: _KATAKANA in _ranks(_look(value[run[at]]))
    ):
        places = list(group)
        is_clear = kana and any(_KATAKANA in clear[at] for at in places)
        yield from [frozenset({_KATAKANA})] * len(places) if is_clear else [homes[at] for at in places]


def _last(clear: Sequence[Scripts]) -> Iterator[tuple[int, Scripts]]:
    """For each place, how far before it a script is named, and which."""
    at_last, scripts = -len(clear), _ANY
    for at, here in enumerate(clear):
        if here:
            at_last, scripts = at, here
        yield at - at_last, scripts


def _sequence_at(value: str, start: int, stop: int, possible: Scripts | None) -> str:
    """A character that looks like the sequence which begins here, and could stand there instead."""
    look = _look(value[start])
    for at in range(start + 1, min(start + _LONGEST, stop)):
        before, look = len(look), look + _look(value[at])
        if value[start : at + 1].isascii():
            continue
        for length in range(before + 1, min(len(look), _LONGEST) + 1):
            for char in TWINS.get(look[:length], ()):
                scripts = scripts_of(char)
                # What looks like ASCII is told of where it stands.
                told = look[:length].isascii() and char not in _EVERYDAY
                # Latin letters stand beside those of scripts without spaces, too.
                if not told and (not scripts or not possible or scripts & (possible | {"Latin"})):
                    return char
    return ""


def _look(char: str) -> str:
    return PROTOTYPES.get(char, char)


def _alike(look: str) -> tuple[str, ...]:
    return TWINS.get(look, (look,))


@lru_cache(maxsize=4096)
def _ranks(look: str) -> dict[str, int]:
    """The scripts in which something looks so, each with 1 if that is not in everyday use.

    Nothing if it is in all of them.
    """
    ranks: dict[str, int] = {}
    for char in _alike(look):
        scripts = scripts_of(char)
        if not scripts:
            return {}
        for script in scripts:
            ranks[script] = min(ranks.get(script, 1), int(char in RARE))
    return dict.fromkeys(_spelled(look), 1) | ranks


@lru_cache(maxsize=4096)
def _spelled(look: str) -> Scripts:
    """The scripts in which several letters can look so."""
    sets = [frozenset(ranks) for part in look if len(look) > 1 and (ranks := _ranks(part))]
    return frozenset.intersection(*sets) if sets else _ANY


def _order(script: str) -> tuple[int, str]:
    return (_ORDER.index(script) if script in _ORDER else len(_ORDER)), script


@lru_cache(maxsize=4096)
def _usual(look: str, home: Scripts) -> str:
    """The one of the look-alikes that is at home, else the most usual one."""
    if len(look) > 1 and look.isascii():
        return look
    alike = _alike(look)
    # ASCII is at home beside scripts without spaces: the digits of a date, a name.
    if alike[0].isascii() and not home.isdisjoint(_UNSPACED):
        return alike[0]
    return next((char for char in alike if scripts_of(char) & home), alike[0])


@lru_cache(maxsize=4096)
def _in_word(look: str) -> bool:
    """Whether words can be made of what looks so; what ASCII has among its signs divides them."""
    alike = _alike(look)
    ascii_ones = [char for char in alike if char.isascii()]
    if ascii_ones and not any(char.isalnum() for char in ascii_ones):
        return False
    return any(unicodedata.category(char)[0] in "LMN" for char in alike)

"""The generated tables against sources of their own: the `regex` module and `unicodedata`.

`regex` knows a newer Unicode, so only what Unicode 15.0 assigns is compared, and the few
characters whose properties were changed since are named here.
"""

from __future__ import annotations

import functools
import unicodedata
from collections import defaultdict

import pytest
import regex

from confirmhub.display import VERSION, properties
from confirmhub.display.properties import (
    ENCLOSING_MARK,
    ESCAPED,
    LETTER,
    LOOKALIKES,
    MARK,
    SEQUENCES,
    SPACING_MARK,
    UNASSIGNED,
    kind,
    scripts_of,
)

# Changed after Unicode 15.0: a letter became lower case, a mark spacing.
CHANGED = frozenset("\u0295\U0001171e")


@functools.cache
def every() -> str:
    """Every code point. Made when a test asks: each process of the run imports this module."""
    return "".join(map(chr, range(0x110000)))


@functools.cache
def by_kind() -> dict[int, frozenset[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for char in every():
        found[kind(char)].append(char)
    return {number: frozenset(chars) for number, chars in found.items()}


@functools.cache
def assigned() -> frozenset[str]:
    return frozenset(every()) - by_kind()[UNASSIGNED]


@functools.cache
def compared() -> str:
    return "".join(sorted(assigned() - CHANGED))


def having(pattern: str, among: str) -> frozenset[str]:
    return frozenset(regex.findall(pattern, among, flags=regex.V1))


def test_every_python_knows_what_is_assigned() -> None:
    known = frozenset(char for char in every() if unicodedata.category(char) != "Cn")

    assert known >= assigned()
    if unicodedata.unidata_version == properties.UNICODE_VERSION:
        assert known == assigned()


def test_there_are_as_many_characters_as_unicode_says() -> None:
    private_and_surrogates = 6_400 + 2 * 65_534 + 2_048 + 65  # and the 65 controls

    assert len(assigned()) - private_and_surrogates == 149_186  # Unicode 15.0, chapter 1


@pytest.mark.parametrize(
    ("table", "pattern"),
    [
        (LETTER, r"[\p{Lo}--\p{DI}]"),
        (MARK, r"[\p{Mn}--\p{DI}--\U00016fe4]"),
        (SPACING_MARK, r"\p{Mc}"),
        (ENCLOSING_MARK, r"\p{Me}"),
        (
            ESCAPED,
            r"[[\p{C}\p{Z}\p{DI}\u2800\ufffc\U0001d159\U00016fe4\u27e8\u27e9]--\p{PCM}--\ ]",
        ),
        (properties.VIRAMAS, r"\p{ccc=9}"),
        (properties.OVERLAYS, r"\p{ccc=1}"),
        (properties.JOINS_NEXT, r"[\p{jt=L}\p{jt=D}]"),
        (properties.JOINS_PREVIOUS, r"[\p{jt=R}\p{jt=D}]"),
        (properties.TRANSPARENT, r"\p{jt=T}"),
        (properties.PREPENDED, r"\p{PCM}"),
        (properties.EMOJI_AS_TEXT, r"[\p{Emoji}--\p{EPres}]"),
        (properties.EMOJI_AS_PICTURE, r"\p{EPres}"),
    ],
)
def test_a_table_says_what_another_source_says(table: int | frozenset[str], pattern: str) -> None:
    members = by_kind()[table] if isinstance(table, int) else table

    assert members & assigned() - CHANGED == having(pattern, compared())


def test_scripts_are_those_of_another_source() -> None:
    # Thousands of characters a script add nothing here.
    large = r"[\u3500-\u9f00\uac10-\ud790\U00013100-\U00014600\U00017100-\U00018c00\U00020100-\U0003ffff]"
    sample = regex.sub(large, "", compared())
    ours: dict[str, set[str]] = {}
    for char in sample:
        for script in scripts_of(char):
            ours.setdefault(script, set()).add(char)

    for script, members in ours.items():
        name = script.replace(" ", "_")
        # Since, Unicode has said of more characters that a script uses them, and of these two
        # Vedic signs that Devanagari does not.
        assert members - set("\u1cf5\u1cf6") <= having(rf"\p{{scx={name}}}", sample)
        own = having(rf"\p{{sc={name}}}", sample)
        assert {char for char in own if len(scripts_of(char)) < 2} <= members


def test_the_listed_emoji_sequences_are_one_grapheme_each() -> None:
    assert len(SEQUENCES) == 1_350 + 3
    for sequence in SEQUENCES:
        assert regex.fullmatch(r"\X", sequence)
        assert regex.fullmatch(
            r"(?:\p{Emoji}\p{EMod}?)(?:\u200d\p{Emoji}\p{EMod}?)+|\U0001f3f4[\U000e0061-\U000e007a]{5}\U000e007f",
            sequence,
        )


def test_look_alikes_are_visible_and_not_ascii() -> None:
    for char, look in LOOKALIKES.items():
        assert not char.isascii()
        assert kind(char) < ESCAPED
        assert look.isascii()
        assert look.isprintable()
        assert look


@pytest.mark.parametrize(
    ("word", "look"),
    [
        ("\u0430\u0440\u0440\u04cf\u0435", "apple"),  # older data reads U+04CF as an i
        ("\u0440\u0430\u0443\u0440\u0430\u04cf", "paypal"),
        ("\u0455\u0441\u043e\u0440\u0435", "scope"),
        ("\u03bf\u03c1\u03b1", "opa"),
        ("\u0585\u0578\u057d", "onu"),
        ("\u13a0\u13a2\u13ac", "DTE"),
        ("\u2010\u2215\u01c3\u037e\u2044\u2216", "-/!;/\\"),
    ],
)
def test_known_look_alikes_are_in_the_table(word: str, look: str) -> None:
    assert "".join(LOOKALIKES[char] for char in word) == look


def test_the_version_names_the_unicode_data() -> None:
    assert VERSION == "display 1, Unicode 15.0.0, confusables 18.0.0"

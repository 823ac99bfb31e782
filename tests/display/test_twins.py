"""No silent twins (P7): of two values that look alike and hold no token, one is told of.

What looks alike is said by another implementation of UTS #39. What ASCII characters are to each
other is left to the font, and the blocks of Hangul are no rows of letters.
"""

from __future__ import annotations

import itertools
import unicodedata

import pytest
import regex
from glyphguard import skeleton
from glyphguard._data.ucd import CONFUSABLE_SOURCES
from hypothesis import given
from hypothesis import strategies as st

from confirmhub.display import show, text
from confirmhub.display.properties import CONFUSABLES_VERSION, OVERLAYS, PROTOTYPES, TWINS, scripts_of
from tests.display.hostile import OPEN
from tests.invariants import proves

SYLLABLES = regex.compile(r"([\uac00-\ud7a3]+)")
LETTERS = sorted(char for char in PROTOTYPES if scripts_of(char) or char.isascii())
BY_SCRIPT = {
    script: [char for char in LETTERS if script in scripts_of(char)]
    for script in sorted({script for char in LETTERS for script in scripts_of(char)})
}
CLEAR = "\u0436\u0449\u03b6\u5165\u30f3\u0e01\u05e9\u0634\u0905\ud55czq5-/."


def look(value: str) -> str:
    pieces = SYLLABLES.split(value)
    return "".join(piece if at % 2 else skeleton(piece) for at, piece in enumerate(pieces))


def as_in_ascii(value: str) -> str:
    return "".join(skeleton(char) if char.isascii() else char for char in value)


def is_told(one: str, other: str) -> bool:
    """Whether a reader can tell that one is not the other."""
    return (
        as_in_ascii(one) == as_in_ascii(other)
        or OPEN in text(one) + text(other)
        or show(one).flags != ()
        or show(other).flags != ()
    )


def alike(char: str) -> st.SearchStrategy[str]:
    """What looks like a character: another one, or a sequence."""
    prototype = PROTOTYPES.get(char, char)
    sequence = st.tuples(*(st.sampled_from(TWINS.get(part, (part,))) for part in prototype)).map("".join)
    return st.sampled_from(TWINS.get(prototype, (char,))) | sequence


characters = st.sampled_from(sorted(BY_SCRIPT)).flatmap(
    lambda script: st.sampled_from(BY_SCRIPT[script] + [char for char in CLEAR if script in scripts_of(char)])
)
twins = st.lists(
    st.one_of(characters, st.sampled_from(LETTERS), st.sampled_from(CLEAR)), min_size=1, max_size=5
).flatmap(
    lambda value: st.tuples(
        st.just("".join(value)), st.tuples(*(st.just(char) | alike(char) for char in value)).map("".join)
    )
)
one_script = st.sampled_from(sorted(BY_SCRIPT)).flatmap(
    lambda script: st.lists(st.sampled_from(BY_SCRIPT[script]), min_size=1, max_size=5)
)


@proves("display:twins-told")
@given(pair=twins)
def test_of_two_values_that_look_alike_one_is_told_of(pair: tuple[str, str]) -> None:
    for one, other in itertools.product(*({value, unicodedata.normalize("NFC", value)} for value in pair)):
        assert look(one) != look(other) or is_told(one, other)


@given(value=one_script, data=st.data())
def test_of_two_words_that_look_alike_one_is_told_of(value: list[str], data: st.DataObject) -> None:
    one = unicodedata.normalize("NFC", "".join(value))
    other = unicodedata.normalize("NFC", "".join(data.draw(alike(char)) for char in value))

    assert look(one) != look(other) or is_told(one, other)


@pytest.mark.parametrize(("before", "after"), [("", ""), ("\u0436", ""), ("\u5165", "\u30f3"), ("a/", "1")])
def test_of_any_two_characters_that_look_alike_one_is_told_of(before: str, after: str) -> None:
    silent = []
    for members in TWINS.values():
        values = (before + char + after for char in members)
        untold = [value for value in values if not show(value).flags and OPEN not in text(value)]
        silent += [pair for pair in itertools.combinations(untold, 2) if not is_told(*pair)]

    assert silent == []


def test_what_looks_alike_is_what_another_source_says() -> None:
    looks: dict[str, set[str]] = {}
    for char in {chr(code) for code in CONFUSABLE_SOURCES} | set(PROTOTYPES):
        if OPEN not in text(f"a{char}a") and unicodedata.normalize("NFKC", char) == char:
            looks.setdefault(look(char), set()).add(char)
    shared = {prototype: chars for prototype, chars in looks.items() if len(chars) > 1}

    assert len(shared) > 1_000
    assert shared == {
        prototype: set(members)
        for prototype, members in TWINS.items()
        if len(members) > 1 and not OVERLAYS.issuperset(members)
    }
    assert all(look(char) == PROTOTYPES[char] for char in PROTOTYPES)
    assert CONFUSABLES_VERSION == "18.0.0"


@proves("display:calm")
@pytest.mark.parametrize(
    "value",
    [
        pytest.param("Zażółć gęślą jaźń", id="polish"),
        pytest.param("Příliš žluťoučký kůň úpěl ďábelské ódy", id="czech"),
        pytest.param("İstanbul'da öğle yemeği şöyle", id="turkish"),
        pytest.param("Das ist für die Größe \u2014 naïve café", id="german"),
        pytest.param("Đặng Văn Lâm ăn cơm ở Hà Nội", id="vietnamese"),
        pytest.param("Удалить файл юбилей", id="russian"),
        pytest.param("Отчёт за июль", id="russian-of-look-alikes"),
        pytest.param("हिन्दी में लिखा हुआ आदेश", id="hindi"),
        pytest.param("မြန်မာဘာသာ", id="burmese"),
        pytest.param("தமிழ் மொழி", id="tamil"),
        pytest.param("한국어 텍스트입니다", id="korean"),
        pytest.param("カタログをもう一度", id="japanese"),
        pytest.param("日本語カタログ 2026年10月", id="japanese-with-a-date"),
        pytest.param("请删除第一个文件", id="chinese"),
    ],
)
def test_nothing_is_told_of_ordinary_words(value: str) -> None:
    assert show(value).flags == ()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("Stra\u03b2e", "mixed-script"),
        ("\u03ac", "twin"),
        ("\u0441\u043e\u044e\u0437\u044c\u0456", "twin"),
        ("\u9577\u53e3\u30fc", "twin"),
        ("\u0103 \u01ce", "twin"),
        ("\u4ed6\u2014\u597d", "twin"),
    ],
)
def test_what_others_look_like_is_told_calmly(value: str, told: str) -> None:
    assert told in {flag.code for flag in show(value).flags}
    if told == "twin":
        assert all(flag.level == "info" for flag in show(value).flags)

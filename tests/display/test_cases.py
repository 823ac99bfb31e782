"""The inputs that were collected from reports, and what is expected of their text."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from confirmhub.display import show, text
from tests.display.hostile import hidden_in

CASES: list[dict[str, Any]] = [
    case | {"input": case["input"] * case.get("times", 1)}
    for case in json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))
]
LEGIT = [case for case in CASES if case["id"].startswith("legit")]


def named(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases])


def characters(names: list[str]) -> list[str]:
    return [chr(int(name.partition("+")[2], 16)) for name in names]


@named(CASES)
def test_a_collected_input_is_shown_as_expected(case: dict[str, Any]) -> None:
    expect = case["expect"]

    projection = text(case["input"])

    assert projection.splitlines() == [projection]
    for char in characters(expect.get("forbidden_codepoints", [])):
        assert char not in projection
    for char in characters(expect.get("must_reveal_codepoints", [])):
        assert f"U+{ord(char):04X}" in projection
    for twin in expect.get("must_remain_distinct_from", []):
        assert text(twin) != projection
    for part in expect.get("must_still_show", []):
        assert part in projection
    if expect.get("non_blank"):
        assert hidden_in(projection) == []
    assert len(projection) <= expect.get("max_chars", len(projection))
    assert unicodedata.category(projection[0])[0] != "M"
    assert re.search(r"\s{2}", projection) is None
    projection.encode("utf-8")


@named(LEGIT)
def test_ordinary_text_raises_no_warning(case: dict[str, Any]) -> None:
    assert [flag for flag in show(case["input"]).flags if flag.level == "warn"] == []


@named([case for case in LEGIT if "with-token" not in case["id"]])
def test_ordinary_text_is_shown_as_it_is(case: dict[str, Any]) -> None:
    assert text(case["input"]) == case["input"]


@named([case for case in CASES if "should_flag" in case["expect"]])
def test_a_deceptive_input_is_flagged(case: dict[str, Any]) -> None:
    wanted = {code for choice in case["expect"]["should_flag"] for code in choice.split(" or ")}

    assert wanted & {flag.code for flag in show(case["input"]).flags}


@named(CASES)
def test_of_two_equal_spellings_one_is_flagged(case: dict[str, Any]) -> None:
    value = case["input"]
    for twin in case["expect"].get("must_remain_distinct_from", []):
        if unicodedata.normalize("NFC", value) == unicodedata.normalize("NFC", twin):
            tokens = "\u27e8" in text(value) + text(twin)
            assert tokens or show(value).flags or show(twin).flags

"""Hostile values of the largest size take time in proportion to their length."""

from __future__ import annotations

import time

import pytest

from confirmhub.display import short, show, text, unshow

SIZE = 32 * 1024


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param("\u0301", id="marks"),
        pytest.param("\u0301\u0302", id="different-marks"),
        pytest.param(" ", id="spaces"),
        pytest.param("a ", id="words"),
        pytest.param("\u200d", id="joiners"),
        pytest.param("\u0628\u200c\u064b", id="joiners-and-marks"),
        pytest.param("\u0915\u094d\u200d", id="conjuncts"),
        pytest.param("\U0001f468\u200d", id="families"),
        pytest.param("\U0001f3f4\U000e0067", id="flags"),
        pytest.param("\U0001f1e6", id="flag-letters"),
        pytest.param("<", id="brackets"),
        pytest.param("<U+", id="forged-tokens"),
        pytest.param("\u0430", id="one-word"),
        pytest.param("a\u0430", id="one-mixed-word"),
        pytest.param("1,\u0661,", id="one-number"),
        pytest.param("\U000e0041", id="tags"),
        pytest.param("a\ufe0f", id="selectors"),
        pytest.param("\u05d0/", id="path"),
        pytest.param("\u1100", id="jamo"),
        pytest.param("\n", id="lines"),
    ],
)
def test_a_hostile_value_does_not_take_long(unit: str) -> None:
    def seconds(size: int) -> float:
        value = (unit * size)[:size]
        start = time.process_time()
        assert show(value).pieces
        assert unshow(text(value)) == value
        assert short(value, 100)
        return time.process_time() - start

    # Four times the size would take sixteen times as long if it were quadratic. The second
    # allows for a machine that does something else, and bounds what a request can cost.
    taken = seconds(SIZE)
    assert taken < 4 * seconds(SIZE // 4) * 2 + 1
    assert taken < 10

"""A benchmark says of each bar whether it is met, and fails where one is not."""

from __future__ import annotations

import json

import pytest

from tests.bench.common import Bar, conclude

FAST = Bar("time, p99", 1.5, 2.0, "s")
OFTEN = Bar("calls a second", 1_200, 1_000, at_least=True)


def test_bars_that_are_met_are_told_and_the_last_line_is_for_programs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    conclude(FAST, OFTEN, rows=5)

    out, told = capsys.readouterr()
    assert told.splitlines() == [
        "met     time, p99       1.5 s  (at most 2.0)",
        "met     calls a second  1,200  (at least 1,000)",
    ]
    found = json.loads(out.splitlines()[-1])
    assert (found["rows"], found["missed"]) == (5, [])
    assert found["bars"]["time, p99"] == {"found": 1.5, "bar": 2.0, "met": True}


@pytest.mark.parametrize("missed", [FAST._replace(found=2.01), OFTEN._replace(found=999)])
def test_a_bar_that_is_missed_is_named_and_fails_the_benchmark(
    capsys: pytest.CaptureFixture[str], missed: Bar
) -> None:
    with pytest.raises(SystemExit) as ended:
        conclude(FAST._replace(what="other"), missed)

    out, told = capsys.readouterr()
    assert ended.value.code == 1
    assert f"MISSED  {missed.what}" in told
    assert json.loads(out)["missed"] == [missed.what]


@pytest.mark.parametrize("just", [FAST._replace(found=2.0), OFTEN._replace(found=1_000)])
def test_a_bar_that_is_just_reached_is_met(just: Bar) -> None:
    assert just.met

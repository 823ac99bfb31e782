"""The inputs that were collected from reports and that only a whole page can answer. Each has its test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

CASES: dict[str, str] = {
    case["id"]: case["input"]
    for case in json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))
}
TESTED: set[str] = set()


def answers[**P](case: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Say that a test runs this case in the browser."""
    assert case in CASES

    def mark(test: Callable[P, None]) -> Callable[P, None]:
        TESTED.add(case)
        return test

    return mark

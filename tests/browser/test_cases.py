"""Every collected case that takes a whole page is run in the browser."""

from __future__ import annotations

from tests.browser import test_deciding, test_forms, test_looking
from tests.browser.cases import CASES, TESTED


def test_every_case_of_a_page_is_run_in_the_browser() -> None:
    assert all(module.__name__ for module in (test_deciding, test_forms, test_looking))  # which mark them
    assert set(CASES) == TESTED

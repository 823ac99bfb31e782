"""Right-to-left values are drawn in the order in which they are written: compared pixel by pixel.

What they are compared with is laid out piece by piece in boxes of their own, from left to right, so that
no bidirectional algorithm reaches from one piece into another.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.principals import Principal
from tests.browser.conftest import OpenPage
from tests.browser.looks import difference
from tests.factories import AUDIENCE, make_pending

pytestmark = pytest.mark.django_db(transaction=True)

FOUND: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "display" / "cases.json").read_text("utf-8")
)
CASES = {case["id"]: case["input"] for case in FOUND if case["id"].startswith("bidi-")}

# Replaces what a box holds by its pieces, each in a box.
APART = r"""box => {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT), pieces = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const token = node.parentElement.matches(".cp");
        const texts = token ? [node.data] : node.data.split(/([/\\:.@?&=#,; ])/);
        for (const text of texts.filter(Boolean)) {
            const piece = document.createElement("span");
            piece.textContent = text;
            piece.className = token ? "cp" : "";
            piece.style.display = token ? "inline" : "inline-block";
            piece.style.whiteSpace = "pre";
            piece.style.unicodeBidi = token ? "isolate-override" : "isolate";
            pieces.push(piece);
        }
    }
    box.replaceChildren(...pieces);
}"""

# Draws a box as a page would that trusts its values.
NAIVE = "(box, value) => { box.textContent = value; box.style.unicodeBidi = 'normal'; box.dir = 'auto'; }"


ALIKE = 0.02  # the share of pixels in which two drawings of one text may differ


def drawn(page: Page) -> bytes:
    return page.locator("dd .v").first.screenshot(animations="disabled")


def test_all_the_cases_are_here() -> None:
    assert len(CASES) == 9


@pytest.mark.parametrize("value", CASES.values(), ids=CASES)
def test_it_is_drawn_as_it_is_written(open_page: OpenPage, alice: User, agent: Principal, value: str) -> None:
    action = Action(AUDIENCE, "run", {"value": value})
    page = open_page(f"/confirm/{make_pending(agent, action=action).id}", as_=alice)
    box = page.locator("dd .v").first

    ours = drawn(page)
    box.evaluate(APART)
    apart = drawn(page)
    box.evaluate(NAIVE, value)
    naive = drawn(page)

    assert difference(page, ours, apart) < ALIKE
    assert difference(page, ours, naive) > 2 * ALIKE

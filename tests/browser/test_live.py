"""The open inbox: it says that something came, and nothing moves under the pointer."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.principals import Principal
from tests.browser.conftest import OpenPage
from tests.factories import AUDIENCE, decide, make_pending

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("width", [1280, 320], ids=["desktop", "400-percent"])
def test_what_comes_while_the_inbox_is_open_is_told_and_moves_nothing(
    open_page: OpenPage, alice: User, agent: Principal, width: int
) -> None:
    make_pending(agent, question="The first?")
    page = open_page("/", as_=alice, viewport={"width": width, "height": 800})
    line, first = page.locator("[data-live]"), page.get_by_role("link", name="The first?")
    expect(page).to_have_title("(1) Waiting for you · confirmhub")
    expect(line).to_have_text("1 open")
    before = first.bounding_box()

    make_pending(agent, action=Action(AUDIENCE, "run", {}), question="The second?")

    expect(line).to_contain_text("2 open")
    expect(page).to_have_title("(2) Waiting for you · confirmhub")
    assert first.bounding_box() == before
    expect(page.get_by_text("The second?")).to_have_count(0)
    page.get_by_role("link", name="Something new: show it").click()
    expect(page.get_by_role("link", name="The second?")).to_be_visible()
    expect(line).to_have_text("2 open")


def test_what_is_settled_elsewhere_is_told(open_page: OpenPage, alice: User, agent: Principal) -> None:
    asked = make_pending(agent)
    page = open_page("/", as_=alice)
    expect(page).to_have_title(re.compile(r"^\(1\)"))

    decide(asked, alice)

    expect(page.locator("[data-live]")).to_contain_text("0 open")
    page.get_by_role("link", name="look again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")


def test_without_javascript_the_number_is_there(open_page: OpenPage, alice: User, agent: Principal) -> None:
    make_pending(agent)

    page = open_page("/", as_=alice, java_script_enabled=False)

    expect(page.locator("[data-live]")).to_have_text("1 open")

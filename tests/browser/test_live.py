"""The open pages: they say what has changed meanwhile, and nothing moves under the pointer."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result
from confirmhub.pages import live
from tests.browser.conftest import OpenPage
from tests.factories import AUDIENCE, decide, make_pending, redeem

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


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "FOLLOW", dt.timedelta(seconds=0.2))


@pytest.mark.usefixtures("soon")
def test_an_open_receipt_shows_that_the_yes_is_used_and_what_came_of_it(
    open_page: OpenPage, alice: User, agent: Principal
) -> None:
    asked = decide(make_pending(agent), alice)
    page = open_page(f"/confirm/{asked.id}", as_=alice)
    stamp = page.locator(".stamp b")
    expect(stamp).to_have_text("Approved")

    receipt = redeem(asked, agent)
    expect(stamp).to_have_text("Used")
    ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED, detail="")

    expect(stamp).to_have_text("Done")
    expect(page.locator("[data-follow]")).to_have_count(0)


@pytest.mark.usefixtures("soon")
def test_an_open_receipt_takes_nothing_from_who_writes_a_reason(
    open_page: OpenPage, alice: User, agent: Principal
) -> None:
    asked = decide(make_pending(agent), alice)
    page = open_page(f"/confirm/{asked.id}", as_=alice)
    reason = page.get_by_label("Second thoughts?")
    reason.fill("on second thoughts")

    redeem(asked, agent)

    page.get_by_role("status").get_by_role("link", name="This has changed: look again").wait_for()
    expect(reason).to_have_value("on second thoughts")
    page.get_by_role("link", name="look again").click()
    expect(page.locator(".stamp b")).to_have_text("Used")


@pytest.mark.usefixtures("soon")
def test_an_open_receipt_closes_nothing_that_somebody_reads(
    open_page: OpenPage, alice: User, agent: Principal
) -> None:
    asked = decide(make_pending(agent, summary="two\nlines"), alice)
    page = open_page(f"/confirm/{asked.id}", as_=alice)
    page.get_by_text("Exact text").click()

    redeem(asked, agent)

    page.get_by_role("link", name="This has changed: look again").wait_for()
    expect(page.get_by_text("'two\\nlines'")).to_be_visible()


@pytest.mark.parametrize("width", [1280, 320], ids=["desktop", "400-percent"])
def test_an_open_question_says_that_it_is_settled_and_moves_no_button(
    open_page: OpenPage, alice: User, agent: Principal, width: int
) -> None:
    asked = make_pending(agent)
    page = open_page(f"/confirm/{asked.id}", as_=alice, viewport={"width": width, "height": 800})
    approve = page.get_by_role("button", name="Approve once")
    before = approve.bounding_box()

    ledger.cancel(confirmation_id=asked.id, requester=agent)

    expect(page.get_by_role("link", name="This has changed: look again")).to_be_visible()
    assert approve.bounding_box() == before
    page.get_by_role("link", name="look again").click()
    expect(page.locator(".stamp b")).to_have_text("Withdrawn")


def test_without_javascript_the_number_is_there(open_page: OpenPage, alice: User, agent: Principal) -> None:
    make_pending(agent)

    page = open_page("/", as_=alice, java_script_enabled=False)

    expect(page.locator("[data-live]")).to_have_text("1 open")

"""Deciding in a real Chromium: what a person does on purpose counts once, a slip does not count."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from playwright.sync_api import Page, expect

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.models import Confirmation, Decision, Event
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status
from tests.browser.cases import answers
from tests.browser.conftest import OpenPage, Watch
from tests.browser.looks import SCHEMES, stand_out_alike
from tests.confirmations.clock import make_overdue
from tests.factories import AUDIENCE, PASSWORD, decide, make_pending

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/srv/reports/Q3-\u202efdp.exe"


@pytest.fixture
def pending(agent: Principal) -> Confirmation:
    action = Action(AUDIENCE, "delete_file", {"path": PATH, "recursive": False})
    return make_pending(agent, action=action, question="Delete one file?", summary="It is old.")


def url(confirmation: Confirmation) -> str:
    return f"/confirm/{confirmation.id}"


def when_awake(page: Page) -> Page:
    """Wait out the time in which presses are taken for slips."""
    expect(page.locator("form[data-deliberate]")).not_to_have_class("still")
    return page


def test_a_person_approves(open_page: OpenPage, alice: User, pending: Confirmation) -> None:
    page = when_awake(open_page(url(pending), as_=alice))

    page.get_by_role("button", name="Approve once").click()

    expect(page.locator(".stamp b")).to_have_text("Approved")
    pending.refresh_from_db()
    assert pending.status == Status.APPROVED


def test_an_ordinary_question_and_both_answers_are_seen_at_once(
    open_page: OpenPage, alice: User, agent: Principal
) -> None:
    path = "/home/alice.example/.local/share/confirmhub/demo-files/demo-2b7f8da6.txt"
    facts = (
        ("File", path),
        ("Size", "71 bytes"),
        ("Last changed", "2026-12-01 04:55:00 UTC"),
        ("Content", f"SHA-256 {'4be109d7' * 8}"),
    )
    asked = make_pending(
        agent,
        action=Action(AUDIENCE, "delete_file", {"path": path}),
        question="Delete this file?",
        observation=Observation(facts, "etag-1"),
    )

    page = open_page(url(asked), as_=alice, viewport={"width": 1280, "height": 860})

    for name in ("Deny", "Approve once"):
        button = page.get_by_role("button", name=name).bounding_box()
        assert button
        assert button["y"] + button["height"] < 860


def test_a_person_denies_with_a_reason(open_page: OpenPage, alice: User, pending: Confirmation) -> None:
    page = when_awake(open_page(url(pending), as_=alice))

    page.get_by_label("Reason").fill("Not before the audit")
    page.get_by_role("button", name="Deny").click()

    expect(page.locator(".stamp b")).to_have_text("Denied")
    expect(page.get_by_text("Not before the audit")).to_be_visible()
    assert pending.decisions.get().reason == "Not before the audit"


def test_after_the_sign_in_the_whole_question_comes(
    open_page: OpenPage, alice: User, pending: Confirmation
) -> None:
    page = open_page(url(pending))

    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Delete one file?")
    expect(page.get_by_role("button", name="Deny")).to_be_visible()


@answers("page-06")
def test_somebody_else_finds_nothing(
    open_page: OpenPage, bob: User, pending: Confirmation, watch: Watch
) -> None:
    watch.allowed.add(404)

    page = open_page(url(pending), as_=bob)

    expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing here for you")
    expect(page.get_by_text("Q3")).to_have_count(0)


@answers("page-05")
def test_a_double_click_decides_once_and_spends_once(open_page: OpenPage, alice: User) -> None:
    page = open_page("/", as_=alice)
    page.get_by_role("button", name="Try it").click()
    when_awake(page).get_by_role("button", name="Approve once").dblclick()
    expect(page.locator(".stamp b")).to_have_text("Approved")

    when_awake(page).get_by_role("button", name="Spend the yes").dblclick()

    expect(page.locator(".stamp b")).to_have_text("Done")
    kinds = list(Event.objects.order_by("seq").values_list("kind", flat=True))
    assert kinds == ["requested", "approve", "redeemed", "succeeded"]
    assert Decision.objects.count() == 1


def test_the_second_of_two_tabs_is_told(
    open_page: OpenPage, alice: User, pending: Confirmation, watch: Watch
) -> None:
    first = when_awake(open_page(url(pending), as_=alice))
    second = when_awake(open_page(url(pending), as_=alice))
    watch.allowed.add(409)

    first.get_by_role("button", name="Deny").click()
    expect(first.locator(".stamp b")).to_have_text("Denied")
    second.get_by_role("button", name="Approve once").click()

    expect(second.get_by_role("heading", level=1)).to_have_text("This was decided before")
    pending.refresh_from_db()
    assert pending.status == Status.DENIED


def test_the_back_button_shows_what_is_and_not_what_was(
    open_page: OpenPage, alice: User, pending: Confirmation
) -> None:
    page = open_page("/", as_=alice)
    page.get_by_role("link", name="Delete one file?").click()
    when_awake(page).get_by_role("button", name="Approve once").click()
    expect(page.locator(".stamp b")).to_have_text("Approved")

    page.go_back()

    assert page.url.endswith(url(pending))
    shows_that_it_is_approved(page)
    assert Decision.objects.count() == 1


def test_the_back_button_shows_what_was_decided_elsewhere_meanwhile(
    open_page: OpenPage, alice: User, pending: Confirmation
) -> None:
    page = when_awake(open_page(url(pending), as_=alice))
    page.get_by_role("link", name="History").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("History")
    decide(pending, alice)

    page.go_back()
    shows_that_it_is_approved(page)
    page.go_forward()

    expect(page.locator(".rows .tag")).to_have_text("Approved")
    page.go_back()
    shows_that_it_is_approved(page)
    assert Decision.objects.count() == 1


def shows_that_it_is_approved(page: Page) -> None:
    """The page says so, and nothing on it decides."""
    expect(page.locator(".stamp b")).to_have_text("Approved")
    expect(page.get_by_text("Waiting for you")).to_have_count(0)
    expect(page.locator("form[data-deliberate], [name=verdict], [name=digest_shown]")).to_have_count(0)


@pytest.mark.parametrize("verdict", ["Deny", "Approve once"])
def test_it_works_without_javascript(
    open_page: OpenPage, alice: User, pending: Confirmation, verdict: str
) -> None:
    page = open_page(url(pending), as_=alice, java_script_enabled=False)
    expect(page.locator(".due b")).to_contain_text("min")
    expect(page.get_by_text("One moment")).to_have_count(0)

    page.get_by_label("Reason").fill("as agreed")
    page.get_by_role("button", name=verdict).click()

    expect(page.locator(".stamp b")).to_have_text("Denied" if verdict == "Deny" else "Approved")
    assert pending.decisions.get().reason == "as agreed"


def test_a_press_right_after_loading_or_coming_back_is_taken_for_a_slip(
    open_page: OpenPage, alice: User, pending: Confirmation
) -> None:
    page = open_page("/history", as_=alice)
    noon = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
    page.clock.install(time=noon)
    page.clock.pause_at(noon + dt.timedelta(seconds=1))
    page.goto(page.url.replace("/history", url(pending)))
    approve = page.get_by_role("button", name="Approve once")

    word, told = page.get_by_text("One moment"), page.locator("form").get_by_role("status")

    page.clock.run_for(600)
    expect(word).to_be_visible()
    expect(approve).to_be_disabled()
    approve.click(force=True)
    expect(told).to_have_text("That press came too soon and did not count.")
    assert Decision.objects.count() == 0
    page.clock.run_for(200)
    expect(word).to_have_count(0)
    expect(approve).to_be_enabled()
    before = approve.bounding_box()
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    page.clock.run_for(600)
    expect(word).to_be_visible()
    expect(told).to_have_text("")
    assert approve.bounding_box() == before
    approve.click(force=True)
    assert Decision.objects.count() == 0

    page.clock.run_for(200)
    approve.click()
    expect(page.locator(".stamp b")).to_have_text("Approved")


def test_no_key_decides_by_itself(open_page: OpenPage, alice: User, pending: Confirmation) -> None:
    page = when_awake(open_page(url(pending), as_=alice))
    assert page.evaluate("document.activeElement === document.body")

    for key in ("Enter", "Space", "y", "a", "n"):
        page.keyboard.press(key)
    page.get_by_label("Reason").fill("typed, then Enter")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")

    expect(page.get_by_label("Reason")).to_have_value("typed, then Enter")
    assert Decision.objects.count() == 0


def test_the_two_answers_stand_out_alike_and_the_keyboard_meets_no_first(
    open_page: OpenPage, alice: User, pending: Confirmation
) -> None:
    page = when_awake(open_page(url(pending), as_=alice))
    deny, approve = page.get_by_role("button", name="Deny"), page.get_by_role("button", name="Approve once")

    page.get_by_label("Reason").focus()
    page.keyboard.press("Tab")
    expect(deny).to_be_focused()
    page.keyboard.press("Tab")
    expect(approve).to_be_focused()

    page.get_by_label("Reason").focus()
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        stand_out_alike(deny, approve)


def test_when_the_time_is_over_the_open_page_stops_offering(
    open_page: OpenPage, alice: User, pending: Confirmation
) -> None:
    page = open_page("/history", as_=alice)
    page.clock.install()
    page.goto(page.url.replace("/history", url(pending)))

    page.clock.run_for(dt.timedelta(minutes=11).total_seconds() * 1000)

    expect(page.locator(".due b")).to_have_text("0 s")
    expect(page.get_by_text("The time is over.")).to_be_visible()
    page.get_by_role("button", name="Approve once").click(force=True)
    assert Decision.objects.count() == 0


@answers("page-10")
def test_an_answer_that_comes_too_late_is_told_that_there_is_nothing(
    open_page: OpenPage, alice: User, pending: Confirmation, watch: Watch
) -> None:
    page = when_awake(open_page(url(pending), as_=alice))
    make_overdue(pending, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))
    watch.allowed.add(404)

    page.get_by_role("button", name="Approve once").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing here for you")
    assert Decision.objects.count() == 0
    ledger.expire_due(limit=10)
    pending.refresh_from_db()
    assert pending.status == Status.EXPIRED


def test_a_newcomer_tries_it(open_page: OpenPage, alice: User, watch: Watch) -> None:
    page = open_page("/", as_=alice)
    watch.allowed.add(409)

    page.get_by_role("button", name="Try it").click()
    expect(page.locator(".cp")).to_have_text("⟨U+202E⟩")
    when_awake(page).get_by_role("button", name="Approve once").click()
    when_awake(page).get_by_role("button", name="Spend the yes").click()
    expect(page.locator(".stamp b")).to_have_text("Done")
    when_awake(page).get_by_role("button", name="Try to spend it again").click()

    expect(page.get_by_text("Already redeemed at")).to_be_visible()

"""Every page is usable by everybody: WCAG 2.2 AA in both colour schemes, at desktop, phone and 400 % zoom."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect
from pytest_django import Settings

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Verdict
from tests.browser import axe
from tests.browser.conftest import OpenPage, Watch
from tests.browser.looks import scrolls_sideways
from tests.factories import AUDIENCE, decide, make_approved, make_pending, make_user, redeem
from tests.oauth.conftest import Host

pytestmark = pytest.mark.django_db(transaction=True)

# A scheme decides on colours and a width on the layout: each of both once. 320 is 1280 at 400 %.
LOOKS = [("light", 1280), ("dark", 390), ("light", 320)]

QUEUE = "/admin/confirmations/confirmation/"


@pytest.fixture(scope="module")
def program() -> str:
    return axe.source()


@pytest.fixture
def asked(agent: Principal, alice: User) -> Confirmation:
    """A question with every kind of thing on its page."""
    before = Action(AUDIENCE, "run", {"path": "/srv/a.txt", "gone": 1})
    make_approved(agent, alice, action=before)
    action = Action(
        AUDIENCE,
        "run",
        {
            "path": "/srv/Q3-\u202efdp.exe",
            "to": ["p\u0430ypal.com", "\u05d0\u05d1/\u05d2"],
            "lines": "one\ntwo\u200b\n\nfour",
            "nested": {"empty": "", "none": None, "deep": {"number": 1.5}},
        },
    )
    seen = Observation((("Kind", "regular file"), ("Name", "\u202ex")), "etag-1")
    return make_pending(
        agent, action=action, summary="It is <b>old</b>.", observation=seen, question="Run it?"
    )


def check(page: Page, *, program: str) -> None:
    """Hold the open page to the rules in each look."""
    expect(page.locator("form.still")).to_have_count(0)
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        found = axe.violations(page, program=program)
        assert found == [], f"{page.url}, {scheme}, {width} pixels:\n" + "\n".join(found)
        if "/admin/" not in page.url:
            assert not scrolls_sideways(page), f"{page.url}, {width} pixels"


def test_the_rules_find_what_they_look_for(open_page: OpenPage, program: str) -> None:
    page = open_page("/sign-in")
    page.locator("label").first.evaluate("label => label.replaceWith(document.createElement('input'))")
    page.locator("h1").evaluate("heading => heading.style.color = '#eee'")
    page.locator("main").evaluate(
        """main => { for (const name of ["a", "b"]) {
            const small = main.appendChild(document.createElement("button"));
            small.textContent = name;
            Object.assign(small.style, {minHeight: "0", height: "12px", width: "12px", padding: "0"});
        } }"""
    )
    found = axe.violations(page, program=program)

    assert {problem.split(":")[0] for problem in found} == {"label", "color-contrast", "target-size"}


def test_the_page_before_the_sign_in(open_page: OpenPage, program: str, alice: User) -> None:
    page = open_page("/sign-in?next=/history")
    check(page, program=program)

    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    check(page, program=program)


def test_the_page_of_the_api(open_page: OpenPage, program: str) -> None:
    check(open_page("/api/v1/docs"), program=program)


@pytest.mark.parametrize("path", ["/", "/history", "/password", "/account/hosts"])
def test_the_pages_of_a_newcomer(open_page: OpenPage, program: str, alice: User, path: str) -> None:
    check(open_page(path, as_=alice), program=program)


def test_the_inbox(
    open_page: OpenPage, program: str, alice: User, agent: Principal, asked: Confirmation
) -> None:
    make_pending(agent, action=Action(AUDIENCE, "other", {}))
    page = open_page("/", as_=alice)
    expect(page.get_by_role("button", name="Deny all 2")).to_be_visible()

    check(page, program=program)


def test_a_question(open_page: OpenPage, program: str, alice: User, asked: Confirmation) -> None:
    page = open_page(f"/confirm/{asked.id}", as_=alice)
    expect(page.locator(".flag.warn").first).to_be_visible()

    check(page, program=program)


@pytest.mark.parametrize("verdict", Verdict)
def test_a_receipt(
    open_page: OpenPage, program: str, alice: User, asked: Confirmation, verdict: Verdict
) -> None:
    decide(asked, alice, verdict, reason="Because\u202e of this")

    check(open_page(f"/confirm/{asked.id}", as_=alice), program=program)


def test_the_history(
    open_page: OpenPage, program: str, alice: User, agent: Principal, asked: Confirmation
) -> None:
    decide(asked, alice, Verdict.DENY)
    redeem(make_approved(agent, alice), agent)

    check(open_page("/history", as_=alice), program=program)


def test_a_question_after_the_target_changed_while_redemptions_are_stopped(
    open_page: OpenPage, program: str, alice: User, agent: Principal
) -> None:
    def ask(size: str) -> Confirmation:
        seen = Observation((("Size", size), ("First lines", f"one\n{size}\u202e")), f"etag-{size}")
        return make_pending(agent, observation=seen)

    ledger.revoke(
        confirmation_id=decide(ask("1"), alice).id, revoker=agent, reason="The target changed\u200b."
    )
    operator = make_user("operator", is_superuser=True)
    ledger.halt(operator=operator, reason="Incident\u202e 7", action_pattern="payments.*")
    page = open_page(f"/confirm/{ask('2').id}", as_=alice)
    expect(page.get_by_role("heading", name="What changed since you said yes")).to_be_visible()
    expect(page.get_by_text("A yes cannot be used at present.")).to_be_visible()

    check(page, program=program)


def test_the_pages_that_say_no(open_page: OpenPage, program: str, alice: User, watch: Watch) -> None:
    watch.allowed |= {400, 405, 429}
    page = open_page("/try", as_=alice)
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no page at this address")
    check(page, program=program)
    page.goto(page.url.replace("/try", "/confirm/damaged"))
    expect(page.get_by_role("heading", level=1)).to_have_text("That request could not be understood")
    check(page, program=program)
    page.goto(page.url.replace("/confirm/damaged", "/password/changed"))
    check(page, program=program)

    page = open_page("/sign-in")
    for _ in range(5):
        page.get_by_label("Name").fill("alice")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_load_state()
    expect(page.get_by_role("heading", level=1)).to_have_text("Too many failed sign-ins")
    check(page, program=program)


def test_a_refusal_and_a_page_that_is_not_there(
    open_page: OpenPage, program: str, alice: User, asked: Confirmation, watch: Watch
) -> None:
    watch.allowed |= {404, 409}
    page = open_page(f"/confirm/{asked.id}", as_=alice)
    expect(page.locator("form.still")).to_have_count(0)
    decide(asked, alice, Verdict.DENY)
    page.get_by_role("button", name="Approve once").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This was decided before")
    check(page, program=program)

    page.goto(page.url.replace(str(asked.id), "00000000-0000-4000-8000-000000000000"))
    check(page, program=program)


def test_the_consent_to_a_program_and_the_list_of_them(
    open_page: OpenPage, program: str, alice: User, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]  # the host asks without a server
    host = Host(user=alice, resource=settings.MCP_RESOURCE)
    host.browser.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert host.register(client_name="Claude\u202e").status_code == 201
    page = open_page(host.url(), as_=alice)
    expect(page.get_by_role("button", name="Allow")).to_be_visible()
    check(page, program=program)

    host.sign_in()
    page.goto(f"{page.url.split('/oauth')[0]}/account/hosts")
    expect(page.get_by_role("button", name="Disconnect")).to_be_visible()
    check(page, program=program)


def test_the_operators_queue(open_page: OpenPage, program: str, alice: User, asked: Confirmation) -> None:
    decide(asked, alice, reason="It is fine")
    alice.is_staff = alice.is_superuser = True
    alice.save()
    page = open_page(QUEUE, as_=alice)
    check(page, program=program)

    page.goto(f"{page.url}{asked.id}/change/")
    expect(page.get_by_role("cell", name="Reason It is fine", exact=True)).to_be_visible()  # a phone's card
    check(page, program=program)

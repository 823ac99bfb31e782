"""The review in a real Chromium: readable in both schemes, within the screen, and errors at their fields."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from playwright.sync_api import Page, expect

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode
from confirmhub.oauth.models import Client
from tests.browser import axe
from tests.browser.conftest import OpenPage
from tests.browser.looks import contrast, scrolls_sideways
from tests.factories import AUDIENCE, decide, make_pending, make_user, redeem
from tests.review.people import signed_in

pytestmark = pytest.mark.django_db(transaction=True)

PATHS = [
    "",
    "auth/user/",
    "auth/user/{user}/change/",
    "auth/group/{group}/change/",
    "confirmations/confirmation/",
    "confirmations/confirmation/{settled}/change/",
    "confirmations/confirmation/{waiting}/deny/",
    "confirmations/confirmation/{spent}/resolve/",
    "confirmations/halt/",
    "confirmations/halt/add/",
    "confirmations/halt/{halt}/lift/",
    "admin/logentry/",
    "confirmations/rule/",
    "confirmations/rule/{rule}/change/",
    "confirmations/rule/{rule}/delete/",
    "oauth/client/add/",
    "oauth/service/add/",
]
# The lists that Django draws, and what must be read in a row of each.
LISTS = {
    "confirmations/halt": ["State", "Covers", "Reason", "Set by", "Since", "Lifted"],
    "confirmations/rule": ["Rank", "Name", "Action pattern", "Mode", "Approver group"],
    "admin/logentry": ["At", "Who", "Did", "What", "How"],
    "auth/user": ["Username", "Email address"],
    "oauth/client": ["Host", "Calls itself", "How it came", "Blocked", "Created"],
}
LOOKS = [("light", 1280), ("dark", 390)]
# The rows of a form in which a text is wider than the row, which would cut it.
CUT = """rows => rows.filter(row => [...row.querySelectorAll(".help, label")].some(text =>
    text.getBoundingClientRect().right > row.getBoundingClientRect().right + 1)).map(row => row.innerText)"""
# Drawn by Django's own script: a label on a span, beside the field of a pane that has one itself.
DJANGOS = (".search-label-icon",)


@pytest.fixture(scope="module")
def program() -> str:
    return axe.source()


@pytest.fixture
def root() -> User:
    return make_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def payers(root: User) -> Group:
    group = Group.objects.create(name="payers")
    root.groups.add(group)
    Group.objects.create(name="others")
    return group


@pytest.fixture
def rule(payers: Group) -> Rule:
    return Rule.objects.create(
        name="four eyes", rank=1, mode=Mode.APPROVE, approver_group=payers, action_pattern="payments.*"
    )


@pytest.fixture
def settled(agent: Principal, alice: User) -> Confirmation:
    """With values that break at no space."""
    asked = make_pending(agent, action=Action(AUDIENCE, "run", {"path": "x" * 900}), summary="y" * 900)
    return decide(asked, alice, reason="z" * 280)


@pytest.fixture
def several(root: User, agent: Principal, alice: User, settled: Confirmation) -> dict[str, object]:
    """One of each kind that there is a page for, with values that break at no space."""
    action = Action(AUDIENCE, "spend", {})
    spent = decide(make_pending(agent, action=action), alice)
    redeem(spent, agent, action=action)
    waiting = make_pending(agent, action=Action(AUDIENCE, "w" * 90, {"p" * 90: "x\u202e" + "x" * 900}))
    pages = {"settled": settled.pk, "spent": spent.pk, "waiting": waiting.pk}
    halt = ledger.halt(operator=root, reason="z" * 280, client_id="c" * 200, action_pattern="a" * 90)
    return pages | {"halt": halt.pk}


def check(page: Page, *, program: str) -> None:
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        found = axe.violations(page, program=program, but=DJANGOS)
        assert found == [], f"{page.url}, {scheme}, {width} pixels:\n" + "\n".join(found)
        assert not scrolls_sideways(page), f"{page.url}, {width} pixels"
        cut = page.locator(".form-row").evaluate_all(CUT)
        assert cut == [], f"{page.url}, {width} pixels"


def test_every_page_of_the_review_is_readable_and_within_the_screen(
    open_page: OpenPage, program: str, rule: Rule, several: dict[str, object]
) -> None:
    """One test for all: to set up takes longer than to look."""
    root = User.objects.get(username="root")
    known = several | {"user": root.pk, "group": rule.approver_group_id, "rule": rule.pk}
    page = open_page("/admin/", as_=root)

    for path in PATHS:
        page.goto(f"{page.url.partition('/admin/')[0]}/admin/{path.format(**known)}")
        check(page, program=program)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_names_of_both_panes_are_read(open_page: OpenPage, payers: Group, scheme: str) -> None:
    """axe-core leaves out a contrast of one to one: it takes that for a text hidden on purpose."""
    root = User.objects.get(username="root")
    page = open_page(f"/admin/auth/user/{root.pk}/change/", as_=root, color_scheme=scheme)
    for pane in ("available", "chosen"):
        title = page.locator(f".selector-{pane}-title").first
        paper = title.evaluate("title => getComputedStyle(title).backgroundColor")
        inks = title.locator("label, .helptext").evaluate_all(
            "texts => texts.map(text => getComputedStyle(text).color)"
        )
        assert len(inks) == 2
        assert all(contrast(ink, paper) > 4.5 for ink in inks), f"{pane}: {inks} on {paper}"


def test_the_cards_of_a_confirmation_end_at_one_edge(
    open_page: OpenPage, root: User, settled: Confirmation
) -> None:
    page = open_page(f"/admin/confirmations/confirmation/{settled.pk}/change/", as_=root)

    for width in (1440, 1024, 768, 390):
        page.set_viewport_size({"width": width, "height": 800})
        edges = page.locator("fieldset.module, section.record").evaluate_all(
            "cards => cards.map(card => card.getBoundingClientRect()).map(({left, right}) => [left, right])"
        )
        assert len(edges) == 8
        assert all(edge == edges[0] for edge in edges), f"{width} pixels: {edges}"
        ends = page.locator("fieldset .readonly").evaluate_all(
            "texts => texts.map(text => text.getBoundingClientRect().right)"
        )
        assert ends
        assert all(end < edges[0][1] for end in ends), f"{width} pixels: {ends} of {edges[0]}"


def test_the_list_is_whole_however_narrow_the_window_is(
    open_page: OpenPage, program: str, root: User, several: dict[str, object]
) -> None:
    page = open_page("/admin/confirmations/confirmation/", as_=root)

    for width in (1440, 1100, 1025, 1024, 900, 768, 767, 390):
        page.set_viewport_size({"width": width, "height": 800})
        table = page.locator(".results")
        shown, needed = table.evaluate("table => [table.clientWidth, table.scrollWidth]")
        assert needed <= shown, f"{width} pixels: {shown} of {needed} are shown"
        assert not scrolls_sideways(page), f"{width} pixels"


def test_on_a_phone_every_list_is_whole_and_says_what_each_value_is(
    open_page: OpenPage, rule: Rule, several: dict[str, object]
) -> None:
    Client.objects.create(
        client_id="c" * 90,
        name="n" * 90,
        redirect_uris="http://127.0.0.1/callback",
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
    )
    root = User.objects.get(username="root")
    page = open_page("/admin/", as_=root, viewport={"width": 390, "height": 800})
    home = page.url
    client = signed_in(root)
    client.post(f"/admin/auth/group/{rule.approver_group_id}/change/", {"name": "payers"})

    for path, said in LISTS.items():
        page.goto(f"{home}{path}/")
        shown, needed = page.locator(".results").evaluate("list => [list.clientWidth, list.scrollWidth]")
        assert needed <= shown, path
        row = page.locator("#result_list tbody tr").first
        for label in said:
            told = row.get_by_role("cell", name=label, exact=True).bounding_box()
            value = row.locator(f"td:text-is('{label}') + *").bounding_box()
            assert told, (path, label)
            assert value, (path, label)
            assert told["y"] == value["y"], (path, label)
            assert value["x"] + value["width"] <= 390, (path, label)
        page.set_viewport_size({"width": 1280, "height": 800})
        expect(page.locator("#result_list .of").first).to_be_hidden()
        page.set_viewport_size({"width": 390, "height": 800})


def test_on_a_phone_the_tables_of_a_confirmation_are_whole_and_say_what_each_value_is(
    open_page: OpenPage, root: User, settled: Confirmation
) -> None:
    address = f"/admin/confirmations/confirmation/{settled.pk}/change/"
    page = open_page(address, as_=root, viewport={"width": 390, "height": 800})

    for table in page.locator(".record .wrapper").all():
        shown, needed = table.evaluate("table => [table.clientWidth, table.scrollWidth]")
        assert needed <= shown, table.inner_text()
    label = page.locator(".record td.field-when").first.evaluate(
        "cell => getComputedStyle(cell, '::before').content"
    )
    assert label == '"At"'


@pytest.mark.parametrize("width", [900, 390])
def test_what_an_operator_is_in_a_hurry_for_is_there_without_scrolling_past_rows(
    open_page: OpenPage, root: User, several: dict[str, object], width: int
) -> None:
    page = open_page("/admin/confirmations/confirmation/", as_=root, viewport={"width": width, "height": 800})
    longest = page.get_by_role("link", name="Waiting longest").bounding_box()
    rows = page.locator(".results").bounding_box()
    assert longest
    assert rows
    assert longest["y"] + longest["height"] <= rows["y"]

    page.get_by_role("link", name="All stops").click()
    lift = page.get_by_role("link", name="Lift it").bounding_box()
    assert lift
    assert lift["x"] + lift["width"] < width


def test_a_rule_that_is_refused_says_so_at_the_field_and_one_that_is_saved_is_told(
    open_page: OpenPage, program: str, root: User, rule: Rule
) -> None:
    page = open_page(f"/admin/confirmations/rule/{rule.pk}/change/", as_=root)
    page.get_by_label("Approvals needed").fill("2")
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.locator(".field-approvals_needed .errorlist")).to_contain_text("fewer active members (1)")
    check(page, program=program)

    page.get_by_label("Approvals needed").fill("1")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    check(page, program=program)


def test_questions_are_marked_and_denied_together(
    open_page: OpenPage, program: str, otto: User, agent: Principal
) -> None:
    asked = [make_pending(agent, action=Action(AUDIENCE, "run", {"number": each})) for each in range(3)]
    page = open_page("/admin/confirmations/confirmation/?view=waiting", as_=otto)

    page.get_by_role("button", name="Deny what is marked").click()
    expect(page.locator(".messagelist .warning")).to_have_text(
        "Nothing is marked. Mark the questions to deny first, then press the button again."
    )
    for box in page.locator("input.action-select").all()[:2]:
        box.check()
    expect(page.locator(".action-counter")).to_have_text("2 of 3 selected")
    page.get_by_role("button", name="Deny what is marked").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Deny 2 questions")
    check(page, program=program)
    page.get_by_label("Reason").fill("Asked by mistake.")
    page.get_by_role("button", name="Deny all 2").click()

    expect(page.locator(".messagelist .success")).to_contain_text("Denied: 2.")
    states = [Confirmation.objects.get(pk=each.pk).status for each in asked]
    assert states == ["denied", "denied", "pending"]


def test_an_operator_stops_and_lifts(open_page: OpenPage, program: str, otto: User) -> None:
    page = open_page("/admin/confirmations/halt/", as_=otto)

    page.get_by_role("link", name="Add stop").click()
    page.get_by_label("Reason").fill("The bank is closed.")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".messagelist .success")).to_contain_text("Stopped.")
    check(page, program=program)
    page.get_by_role("link", name="Lift it").click()
    page.get_by_label("Reason").fill("It is open.")
    page.get_by_role("button", name="Lift it").click()

    expect(page.locator("#result_list .status")).to_have_text("lifted")


def test_a_form_says_what_is_wrong_in_words(
    open_page: OpenPage, program: str, otto: User, agent: Principal, alice: User
) -> None:
    spent = decide(make_pending(agent), alice)
    redeem(spent, agent)
    page = open_page(f"/admin/confirmations/confirmation/{spent.pk}/resolve/", as_=otto)
    page.locator("form.reasons").evaluate("form => form.noValidate = true")

    page.get_by_role("button", name="Record it").click()

    expect(page.locator(".errorlist")).to_have_count(2)
    check(page, program=program)

"""The review in a real Chromium: readable in both schemes, within the screen, and errors at their fields."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group, User
from playwright.sync_api import Page, expect

from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode
from tests.browser import axe
from tests.browser.conftest import OpenPage
from tests.browser.looks import scrolls_sideways
from tests.factories import AUDIENCE, decide, make_pending, make_user

pytestmark = pytest.mark.django_db(transaction=True)

LOOKS = [("light", 1280), ("dark", 390)]
# Django's own markup: icons of 13 pixels, and labels on spans. The colours are ours.
DJANGOS = ("target-size", "aria-prohibited-attr")


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


def check(page: Page, *, program: str) -> None:
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 800})
        found = axe.violations(page, program=program, without=DJANGOS)
        assert found == [], f"{page.url}, {scheme}, {width} pixels:\n" + "\n".join(found)
        assert not scrolls_sideways(page), f"{page.url}, {width} pixels"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "auth/user/",
        "auth/user/{user}/change/",
        "auth/group/{group}/change/",
        "confirmations/confirmation/",
        "confirmations/confirmation/{settled}/change/",
        "confirmations/rule/",
        "confirmations/rule/{rule}/change/",
        "confirmations/rule/{rule}/delete/",
        "oauth/client/add/",
    ],
)
def test_every_page_of_the_review_is_readable_and_within_the_screen(
    open_page: OpenPage, program: str, rule: Rule, settled: Confirmation, path: str
) -> None:
    root = User.objects.get(username="root")
    known = {"user": root.pk, "group": rule.approver_group_id, "rule": rule.pk, "settled": settled.pk}

    check(open_page(f"/admin/{path.format(**known)}", as_=root), program=program)


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


def contrast(ink: str, paper: str) -> float:
    """WCAG 2.2, contrast ratio."""
    low, high = sorted(luminance(colour) for colour in (ink, paper))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance, of `rgb(r, g, b)`."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


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

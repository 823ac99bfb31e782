"""While redemptions are stopped, every page says so, in red, where it is seen first, in both schemes."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect
from pytest_django import Settings

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.principals import Principal
from tests.browser.conftest import OpenPage, Watch
from tests.browser.looks import contrast
from tests.factories import AUDIENCE, make_approved, make_pending
from tests.oauth.conftest import Host

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "A stolen laptop; we look into it."
PAGES = ["/", "/history", "/password", "/account/notices", "/account/hosts", "/account/hosts/disconnect-all"]
REVIEW = [
    "/admin/",
    "/admin/dashboard",
    "/admin/confirmations/confirmation/",
    "/admin/confirmations/halt/",
    "/admin/confirmations/halt/add/",
    "/admin/confirmations/rule/",
    "/admin/auth/user/",
]


@pytest.fixture
def addresses(agent: Principal, alice: User, settings: Settings) -> list[str]:
    """Of every kind of page that somebody signed in gets to, with a stop in force."""
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]  # the host asks without a server
    host = Host(user=alice, resource=settings.MCP_RESOURCE)
    host.browser.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert host.register(client_name="Claude").status_code == 201
    waiting = make_pending(agent)
    approved = make_approved(agent, alice, action=Action(AUDIENCE, "run", {}))
    alice.is_staff = alice.is_superuser = True
    alice.save()
    ledger.halt(operator=alice, reason=WHY)
    row = f"/admin/confirmations/confirmation/{waiting.id}"
    one = [f"/confirm/{waiting.id}", f"/confirm/{approved.id}", f"{row}/change/", f"{row}/deny/", "/nowhere"]
    return [*PAGES, *REVIEW, *one, host.url()]


def test_every_page_says_so_in_red(
    open_page: OpenPage, alice: User, addresses: list[str], watch: Watch
) -> None:
    watch.allowed |= {404}
    page = open_page("/", as_=alice)
    home = page.url.removesuffix("/")

    for address in addresses:
        page.goto(f"{home}{address}")
        expect_red(page, says=WHY)


@pytest.mark.parametrize("path", ["/sign-in?next=/history", "/nowhere"])
def test_who_is_not_signed_in_sees_it_too(
    open_page: OpenPage, addresses: list[str], path: str, watch: Watch
) -> None:
    watch.allowed |= {404}

    expect_red(open_page(path), says="Sign in to see which")


def expect_red(page: Page, *, says: str) -> None:
    """Hold the notice to be one, seen without scrolling, and red enough to be read on, in both schemes."""
    notice = page.get_by_role("region", name="Stopped")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        expect(notice).to_have_count(1)
        expect(notice).to_contain_text("Redemptions are stopped")
        expect(notice).to_contain_text(says)
        expect(notice).to_be_in_viewport(ratio=1)
        paper, *inks = notice.evaluate(
            """notice => [getComputedStyle(notice).backgroundColor,
            ...[...notice.querySelectorAll("p, a, b")].map(text => getComputedStyle(text).color)]"""
        )
        red, green, blue = (int(part) for part in re.findall(r"\d+", paper)[:3])
        assert red >= 100, f"{page.url}, {scheme}: {paper}"
        assert red > 2.5 * max(green, blue), f"{page.url}, {scheme}: {paper}"
        assert inks
        assert all(contrast(ink, paper) >= 7 for ink in inks), f"{page.url}, {scheme}: {inks} on {paper}"

"""The page that lets a program act for a person, in a real Chromium: a no is as easy as a yes."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect
from pytest_django import Settings

from confirmhub.oauth.models import AccessToken, Code
from tests.browser.conftest import OpenPage
from tests.browser.looks import SCHEMES, stand_out_alike
from tests.oauth.conftest import Host

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(open_page: OpenPage, alice: User, settings: Settings) -> Page:
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]  # the host asks without a server
    host = Host(user=alice, resource=settings.MCP_RESOURCE)
    assert host.register().status_code == 201
    return open_page(host.url(), as_=alice)


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_deny_stands_out_as_much_as_allow(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.locator("form[data-deliberate]")).not_to_have_class("still")

    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        stand_out_alike(
            page.get_by_role("button", name="Deny", exact=True),
            page.get_by_role("button", name="Allow", exact=True),
        )


def test_nobody_begins_on_allow_and_no_key_allows(page: Page) -> None:
    assert page.evaluate("document.activeElement === document.body")
    expect(page.locator("form[data-deliberate]")).not_to_have_class("still")

    for key in ("Enter", "Space", "y", "a", "Control+Enter"):
        page.keyboard.press(key)
    assert "/oauth/authorize" in page.url
    assert not Code.objects.exists()

    deny, allow = page.get_by_role("button", name="Deny"), page.get_by_role("button", name="Allow")
    page.locator("main").evaluate("main => { main.tabIndex = -1; main.focus(); }")
    page.keyboard.press("Tab")
    expect(deny).to_be_focused()
    page.keyboard.press("Tab")
    expect(allow).to_be_focused()


def test_a_press_right_after_loading_is_taken_for_a_slip(page: Page) -> None:
    page.reload(wait_until="domcontentloaded")
    allow = page.get_by_role("button", name="Allow")
    expect(page.locator("form.still")).to_have_count(1)

    allow.click(force=True)

    expect(page.get_by_role("status")).to_have_text("That press came too soon and did not count.")
    assert not Code.objects.exists()
    assert not AccessToken.objects.exists()

"""The page of a person's notices, in a browser: what they choose there works, and everybody can use it."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from confirmhub.confirmations.models import Chore
from confirmhub.notifications.models import Destination, QuietHours
from tests.browser import axe
from tests.browser.conftest import OpenPage, Watch
from tests.browser.test_access import check

pytestmark = pytest.mark.django_db(transaction=True)

HOOK = "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"


def test_a_person_chooses_how_and_when_they_are_told_and_tries_it(open_page: OpenPage, alice: User) -> None:
    page = open_page("/password", as_=alice)
    page.get_by_role("link", name="Your notices").click()
    expect(page.get_by_text("alice@example.org")).to_be_visible()

    page.get_by_label("Slack", exact=True).check()
    page.get_by_label("Address").fill(HOOK)
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_text("hooks.slack.com/\u2026XXXX")).to_be_visible()
    page.get_by_role("button", name="Try it: send a message to Slack").click()
    expect(page.get_by_role("status")).to_contain_text("on its way")
    assert Chore.objects.exists()

    page.get_by_label("Webhook", exact=True).check()
    page.get_by_label("Address").fill("https://hooks.example.com/me")
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_text(re.compile(r"^whsec_"))).to_be_visible()
    page.get_by_role("button", name="Turn off Webhook").click()
    expect(page.get_by_role("button", name="Turn on Webhook")).to_be_visible()

    page.get_by_label("Time zone").select_option("Europe/Berlin")
    page.get_by_role("button", name="Turn them on").click()
    expect(page.get_by_text("From 22:00 to 07:00, Europe/Berlin")).to_be_visible()
    page.get_by_role("button", name="Turn them off").click()
    expect(page.get_by_role("button", name="Turn them on")).to_be_visible()
    assert not QuietHours.objects.exists()


def test_the_page_of_notices_is_usable_by_everybody(open_page: OpenPage, alice: User) -> None:
    Destination.objects.create(user=alice, channel="email")
    Destination.objects.create(
        user=alice, channel="webhook", address=HOOK, secrets="one two", failure="The server answered 500."
    )
    Destination.objects.create(
        user=alice, channel="ntfy", address="https://ntfy.sh/" + "long-topic-" * 9, is_active=False
    )

    check(open_page("/account/notices", as_=alice), program=axe.source())


def test_the_page_asks_for_what_the_chosen_channel_takes(open_page: OpenPage, alice: User) -> None:
    page = open_page("/account/notices", as_=alice)
    takes = {
        "E-mail": (False, False, "Messages go to the address of your account."),
        "Slack": (True, False, "incoming webhook"),
        "Microsoft Teams": (True, False, "the workflow"),
        "ntfy": (True, True, "the topic's URL"),
        "Webhook": (True, False, "each signed"),
    }

    for channel, (address, token, words) in takes.items():
        page.get_by_label(channel, exact=True).check()
        assert page.locator("input[name=address]").is_visible() == address, channel
        assert page.locator("input[name=token]").is_visible() == token, channel
        hints = page.locator(".way span, .way p.of-email").all()
        shown = [hint.inner_text() for hint in hints if hint.is_visible()]
        assert len(shown) == 1, channel
        assert words in shown[0], channel


def test_a_refusal_on_the_page_is_read_out(open_page: OpenPage, watch: Watch, alice: User) -> None:
    watch.allowed |= {400}
    page = open_page("/account/notices", as_=alice)
    page.get_by_label("Slack", exact=True).check()
    page.get_by_label("Address").fill("http://hooks.example.com/")
    page.get_by_role("button", name="Add it").click()

    expect(page.get_by_role("alert")).to_contain_text("must begin with https://")

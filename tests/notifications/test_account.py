"""The page on which a person says how and when they want to be told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from confirmhub.confirmations.models import Chore
from confirmhub.notifications import trials
from confirmhub.notifications.forms import MOST
from confirmhub.notifications.models import Destination, QuietHours

PAGE = "/account/notices"
HOOK = "https://hooks.example.com/services/T0/B0/s3cr3t"


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client(headers={"host": "localhost"})
    client.force_login(alice)
    return client


def add(browser: Client, channel: str = "slack", address: str = HOOK, **more: str) -> str:
    response = browser.post(f"{PAGE}/add", {"channel": channel, "address": address, **more}, follow=True)
    return response.content.decode()


def test_whoever_has_chosen_nothing_is_told_that_mail_goes_to_their_address(browser: Client) -> None:
    assert "alice@example.org" in browser.get(PAGE).content.decode()


def test_mail_that_is_written_to_files_is_not_called_sent(
    browser: Client, alice: User, settings: Settings, tmp_path: Path
) -> None:
    add(browser, "email", "")
    add(browser)
    Destination.objects.filter(user=alice).update(sent_at=Now())
    backend = "confirmhub.notifications.channels.folder.EmailBackend"
    settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": {"file_path": str(tmp_path)}}}

    page = browser.get(PAGE).content.decode()

    assert re.findall(r"last (?:sent|written to a file) 20", page) == [
        "last written to a file 20",
        "last sent 20",
    ]


def test_whoever_has_no_address_is_told_so(browser: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(email="")

    assert "Your account has no address" in browser.get(PAGE).content.decode()


def test_a_destination_is_added_and_its_address_is_not_shown_whole(browser: Client, alice: User) -> None:
    page = add(browser)

    destination = Destination.objects.get(user=alice)
    assert (destination.channel, destination.address) == ("slack", HOOK)
    assert "hooks.example.com/\u2026cr3t" in page
    assert HOOK not in page


@pytest.mark.parametrize(
    ("channel", "address", "says"),
    [
        ("slack", "", "Enter the URL of the channel&#x27;s incoming webhook"),
        ("teams", "", "Enter the URL of the workflow"),
        ("ntfy", "", "Enter the topic&#x27;s URL"),
        ("webhook", "", "Enter the URL that takes the messages"),
        ("slack", "my channel", "plain URL"),
        ("slack", "http://hooks.example.com/x", "https://"),
        ("slack", "https://10.0.0.1/x", "full domain name"),
        ("slack", "https://[::1]/x", "full domain name"),
        ("slack", "https://localhost/x", "full domain name"),
        ("slack", "https://intranet/x", "full domain name"),
        ("slack", "https://0x7f.1/x", "full domain name"),
        ("slack", "https://user:word@hooks.example.com/x", "no user or password"),
        ("slack", "https://HOOKS.example.com/x", "lower case"),
        ("slack", "https://hooks.example.com:0/x", "lower case"),
        ("slack", "https://hooks.example.com:99999/x", "no URL"),
        ("slack", "https://hooks.example.com/x#y", "plain URL"),
        ("slack", "https://hooks.example.com\\@evil.example/", "plain URL"),
        ("slack", "https://hooks.exam\u200bple.com/x", "plain URL"),
        ("slack", "https://hooks.example.com/" + "x" * 500, "500 characters"),
        ("ntfy", "https://ntfy.example.com/", "end in the topic"),
        ("pigeon", HOOK, "Choose a channel"),
    ],
)
def test_an_address_that_may_not_be_posted_to_is_refused_with_what_to_do(
    browser: Client, channel: str, address: str, says: str
) -> None:
    response = browser.post(f"{PAGE}/add", {"channel": channel, "address": address})

    assert response.status_code == 400
    assert says in response.content.decode()
    assert not Destination.objects.exists()


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1", "[::1]:1", "hooks.example.com"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_setting_for_development_is_named_where_it_would_help(
    browser: Client, settings: Settings, scheme: str, host: str
) -> None:
    way = {"channel": "webhook", "address": f"{scheme}://{host}/x"}
    refused = browser.post(f"{PAGE}/add", way)
    settings.WEBHOOKS_TO_LOOPBACK = True
    helped = refused.status_code == 400 and browser.post(f"{PAGE}/add", way).status_code == 200

    assert ("with WEBHOOKS_TO_LOOPBACK=true" in refused.content.decode()) is helped
    assert helped is ("example" not in host)


def test_what_was_typed_stays_where_it_is_refused(browser: Client) -> None:
    page = add(browser, "ntfy", "https://ntfy.example.com/", token="tk_secret")
    assert 'value="ntfy" checked' in page
    assert 'value="https://ntfy.example.com/"' in page
    assert "tk_secret" not in page
    assert "It was not kept: type it again." in page

    hours = {"starts": "21:30", "ends": "21:30", "zone": "Asia/Tokyo", "do": "set"}
    page = browser.post(f"{PAGE}/quiet", hours).content.decode()
    assert page.count('value="21:30"') == 2
    assert "<option selected>Asia/Tokyo</option>" in page


def test_mail_that_is_written_to_files_is_said_to_be(
    browser: Client, settings: Settings, tmp_path: Path
) -> None:
    assert "No mail server" not in browser.get(PAGE).content.decode()
    backend = "django.core.mail.backends.filebased.EmailBackend"
    settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": {"file_path": str(tmp_path)}}}

    page = browser.get(PAGE).content.decode()

    assert "No mail server is set up" in page
    assert str(tmp_path) in page


def test_a_token_is_kept_with_ntfy_alone(browser: Client, alice: User) -> None:
    add(browser, token="tk_secret")
    add(browser, "ntfy", "https://ntfy.example.com/alice", token="tk_secret")

    kept = Destination.objects.filter(user=alice).values_list("channel", "secrets")
    assert dict(kept) == {"slack": "", "ntfy": "tk_secret"}


def test_a_webhooks_secret_is_shown_once_and_rotated_in_two_steps(browser: Client, alice: User) -> None:
    page = add(browser, "webhook")
    destination = Destination.objects.get(user=alice)
    (first,) = destination.secret_list
    assert first in page
    assert first not in browser.get(PAGE).content.decode()

    second = browser.post(f"{PAGE}/{destination.pk}", {"do": "rotate"}).content.decode()
    destination.refresh_from_db()
    assert destination.secret_list[1] == first
    assert destination.secret_list[0] in second

    browser.post(f"{PAGE}/{destination.pk}", {"do": "drop"})
    destination.refresh_from_db()
    assert len(destination.secret_list) == 1
    assert first not in destination.secrets


def test_a_destination_is_turned_off_and_on_and_removed(browser: Client, alice: User) -> None:
    add(browser)
    path = f"{PAGE}/{Destination.objects.get().pk}"

    browser.post(path, {"do": "off"})
    assert not Destination.objects.get().is_active
    browser.post(path, {"do": "on"})
    assert Destination.objects.get().is_active
    browser.post(path, {"do": "remove"})
    assert not Destination.objects.exists()


@pytest.mark.parametrize("do", ["", "delete", "rotate", "drop"])
def test_what_a_destination_cannot_do_is_refused(browser: Client, do: str) -> None:
    add(browser)

    assert browser.post(f"{PAGE}/{Destination.objects.get().pk}", {"do": do}).status_code == 400


def test_a_destination_of_somebody_else_does_not_exist(browser: Client, bob: User) -> None:
    theirs = Destination.objects.create(user=bob, channel="slack", address=HOOK)

    for do in ("try", "off", "remove"):
        assert browser.post(f"{PAGE}/{theirs.pk}", {"do": do}).status_code == 404
    assert "hooks.example.com" not in browser.get(PAGE).content.decode()
    theirs.refresh_from_db()
    assert theirs.is_active


def test_the_same_destination_twice_and_one_too_many_are_refused(browser: Client, alice: User) -> None:
    add(browser)
    assert "there already" in add(browser)
    for number in range(1, MOST):
        add(browser, address=f"{HOOK}{number}")

    assert f"You have {MOST}" in add(browser, address=f"{HOOK}more")
    assert alice.destinations.count() == MOST


def test_trying_writes_one_line_of_the_outbox_however_often_it_is_pressed(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.0)
    add(browser)
    number = Destination.objects.get().pk

    for _ in range(3):
        assert "on its way" in browser.post(f"{PAGE}/{number}", {"do": "try"}).content.decode()

    chore = Chore.objects.get()
    assert chore.task == trials.TASK
    assert chore.slot >> 32 == number


def test_mail_is_tried_by_who_has_chosen_nothing(browser: Client, alice: User) -> None:
    assert "Keep it and try it" in browser.get(PAGE).content.decode()

    page = browser.post(f"{PAGE}/add", {"channel": "email", "do": "try"}).content.decode()

    destination = Destination.objects.get(user=alice)
    assert (destination.channel, destination.is_active) == ("email", True)
    assert Chore.objects.get().slot >> 32 == destination.pk
    assert "on its way" in page
    assert "Keep it and try it" not in page


def test_there_is_no_second_button_to_try_mail_that_has_a_line(browser: Client, alice: User) -> None:
    Destination.objects.create(user=alice, channel="email", is_active=False)

    assert "Keep it and try it" not in browser.get(PAGE).content.decode()


def test_there_is_no_button_to_try_mail_that_has_no_address(browser: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(email="")

    assert "Keep it and try it" not in browser.get(PAGE).content.decode()


def test_quiet_hours_that_are_off_say_so(browser: Client, alice: User) -> None:
    assert "Messages come at any hour." in browser.get(PAGE).content.decode()

    browser.post(f"{PAGE}/quiet", {"starts": "22:00", "ends": "07:00", "zone": "UTC", "do": "set"})

    assert "Messages come at any hour." not in browser.get(PAGE).content.decode()


def test_quiet_hours_are_set_changed_and_ended(browser: Client, alice: User) -> None:
    hours = {"starts": "22:00", "ends": "07:00", "zone": "Europe/Berlin", "do": "set"}
    browser.post(f"{PAGE}/quiet", hours)
    browser.post(f"{PAGE}/quiet", hours | {"zone": "Asia/Tokyo"})

    assert str(QuietHours.objects.get(user=alice)) == "22:00 to 07:00 Asia/Tokyo"
    assert "From 22:00 to 07:00, Asia/Tokyo" in browser.get(PAGE).content.decode()

    browser.post(f"{PAGE}/quiet", {"do": "end"})
    assert not QuietHours.objects.exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"zone": "Mars/Olympus"}, "Choose a time zone"),
        ({"zone": "../../etc/passwd"}, "Choose a time zone"),
        ({"starts": "25:00"}, "Write the times"),
        ({"ends": "22:00"}, "another time"),
    ],
)
def test_hours_that_are_none_are_refused(browser: Client, change: dict[str, str], says: str) -> None:
    hours = {"starts": "22:00", "ends": "07:00", "zone": "Europe/Berlin", "do": "set"} | change

    response = browser.post(f"{PAGE}/quiet", hours)

    assert response.status_code == 400
    assert says in response.content.decode()
    assert not QuietHours.objects.exists()


def test_the_page_asks_for_the_sign_in_and_changes_nothing_by_a_link(browser: Client, db: None) -> None:
    assert Client(headers={"host": "localhost"}).get(PAGE).status_code == 302
    for path in ("add", "quiet", "1"):
        assert browser.get(f"{PAGE}/{path}").status_code == 405

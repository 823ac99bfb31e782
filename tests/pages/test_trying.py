"""The rehearsal: asked, decided, spent once, refused the second time; through the real ledger."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from tests.factories import kinds_of_events

pytestmark = pytest.mark.django_db(transaction=True)


def rehearse(browser: Client) -> Confirmation:
    response = browser.post("/try")
    confirmation = Confirmation.objects.get()
    assert response.headers["Location"] == f"/confirm/{confirmation.id}"
    return confirmation


def approve(browser: Client, confirmation: Confirmation) -> None:
    form = {"verdict": "approve", "digest_shown": bytes(confirmation.view_digest).hex()}
    browser.post(f"/confirm/{confirmation.id}", form)


def test_a_newcomer_walks_through_a_whole_confirmation(browser: Client, alice: User) -> None:
    assert "Try it" in browser.get("/").content.decode()
    confirmation = rehearse(browser)
    question = browser.get(f"/confirm/{confirmation.id}").content.decode()
    approve(browser, confirmation)

    spent = browser.post(f"/try/{confirmation.id}/spend", follow=True)
    again = browser.post(f"/try/{confirmation.id}/spend")

    confirmation.refresh_from_db()
    assert "⟨U+202E⟩" in question
    assert "<b>confirmhub</b>" not in question  # the name stands in an isolate of its own
    assert "part of this service" in question
    assert "Try to spend it again" in spent.content.decode()
    assert again.status_code == 409
    assert "Already redeemed at <time" in again.content.decode()
    assert f"{confirmation.redeemed_at:%Y-%m-%d %H:%M:%S} UTC" in again.content.decode()
    assert kinds_of_events(confirmation) == ["requested", "approve", "redeemed", "succeeded", "refused"]
    assert "See the receipt" in again.content.decode()


def test_asked_twice_it_is_one_question(browser: Client, alice: User) -> None:
    rehearse(browser)
    rehearse(browser)

    assert Confirmation.objects.count() == 1


def test_without_a_yes_there_is_nothing_to_spend(browser: Client, alice: User) -> None:
    confirmation = rehearse(browser)

    response = browser.post(f"/try/{confirmation.id}/spend")

    confirmation.refresh_from_db()
    assert response.status_code == 409
    assert response.headers["Retry-After"]
    assert confirmation.status == Status.PENDING


def test_somebody_elses_rehearsal_cannot_be_spent(browser: Client, stranger: Client, alice: User) -> None:
    confirmation = rehearse(browser)
    approve(browser, confirmation)

    response = stranger.post(f"/try/{confirmation.id}/spend")

    confirmation.refresh_from_db()
    assert response.status_code == 404
    assert confirmation.status == Status.APPROVED


def test_a_rehearsal_is_no_key_to_a_real_confirmation(
    browser: Client, alice: User, pending: Confirmation
) -> None:
    approve(browser, pending)

    response = browser.post(f"/try/{pending.id}/spend")

    pending.refresh_from_db()
    assert response.status_code == 404
    assert pending.status == Status.APPROVED


@pytest.mark.parametrize("path", ["/try", "/try/00000000-0000-4000-8000-000000000000/spend"])
def test_a_get_rehearses_nothing(browser: Client, alice: User, path: str) -> None:
    assert browser.get(path).status_code == 405
    assert Confirmation.objects.count() == 0

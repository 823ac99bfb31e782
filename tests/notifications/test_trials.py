"""The button that sends a message to one's own destination."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Chore, Notice
from confirmhub.notifications import trials
from tests.notifications.receiver import Receiver, answer
from tests.notifications.smtp import Sink
from tests.notifications.support import chooses, work


@pytest.fixture(autouse=True)
def mailer(sink: Sink, settings: Any) -> None:
    settings.MAILERS = {"default": {"OPTIONS": {"host": "127.0.0.1", "port": sink.port, "timeout": 5}}}


def test_a_trial_goes_through_the_outbox_to_that_destination_alone(
    alice: User, receiver: Receiver, sink: Sink
) -> None:
    tried = chooses(alice, "slack", receiver.url("/tried"), is_active=False)
    chooses(alice, "teams", receiver.url("/other"))

    trials.ask(destination=tried)
    assert receiver.received.empty()
    work(receiver)

    posted = receiver.next()
    assert posted.path == "/tried"
    assert "This is how a notice reaches you" in json.dumps(json.loads(posted.body))
    assert receiver.received.empty()
    assert sink.received.empty()
    assert Chore.objects.get().done_at is not None
    assert not Notice.objects.exists()
    tried.refresh_from_db()
    assert tried.sent_at is not None


def test_a_trial_by_mail_reaches_the_accounts_address(alice: User, receiver: Receiver, sink: Sink) -> None:
    trials.ask(destination=chooses(alice, "email"))

    work(receiver)

    assert sink.next()["To"] == "alice@example.org"


@pytest.mark.parametrize(("status", "says"), [(404, "answered 404"), (410, "gone")])
def test_a_trial_that_fails_says_why_and_is_not_repeated(
    alice: User, receiver: Receiver, status: int, says: str
) -> None:
    tried = chooses(alice, "slack", receiver.url())
    receiver.answers["/hook"] = answer(status)

    trials.ask(destination=tried)
    work(receiver)
    work(receiver)

    tried.refresh_from_db()
    assert says in tried.failure
    assert receiver.received.qsize() == 1


def test_a_trial_of_what_was_removed_sends_nothing(alice: User, receiver: Receiver) -> None:
    tried = chooses(alice, "slack", receiver.url())
    trials.ask(destination=tried)
    tried.delete()

    work(receiver)

    assert receiver.received.empty()
    assert Chore.objects.get().done_at is not None

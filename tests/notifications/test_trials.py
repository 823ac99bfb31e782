"""The button that sends a message to one's own destination."""

from __future__ import annotations

import http.client
import json
import ssl
from types import SimpleNamespace
from typing import Any, NoReturn, cast

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


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        TimeoutError(),
        ssl.SSLCertVerificationError("certificate has expired"),
        http.client.BadStatusLine("x"),
        UnicodeError("label too long"),
        ValueError("an odd header"),
        RuntimeError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_fails_a_trial_is_over_and_the_persons_page_names_it(
    alice: User, receiver: Receiver, error: Exception
) -> None:
    tried = chooses(alice, "slack", receiver.url())
    tries = []

    def fail(*_: object, **__: object) -> NoReturn:
        tries.append(1)
        raise error

    trials.ask(destination=tried)
    for _ in range(2):
        work(cast(Receiver, SimpleNamespace(post=fail)))

    tried.refresh_from_db()
    assert type(error).__name__ in tried.failure
    assert len(tries) == 1
    assert Chore.objects.get().done_at is not None


@pytest.mark.parametrize(
    ("refusal", "says"), [("450 later", "SMTPRecipientsRefused"), ("550 never", "refuses the address")]
)
def test_a_trial_by_mail_that_is_refused_says_so(
    alice: User, receiver: Receiver, sink: Sink, refusal: str, says: str
) -> None:
    sink.answers["alice@example.org"] = refusal
    tried = chooses(alice, "email")
    trials.ask(destination=tried)

    work(receiver)

    tried.refresh_from_db()
    assert says in tried.failure
    assert Chore.objects.get().done_at is not None


def test_a_trial_of_what_was_removed_sends_nothing(alice: User, receiver: Receiver) -> None:
    tried = chooses(alice, "slack", receiver.url())
    trials.ask(destination=tried)
    tried.delete()

    work(receiver)

    assert receiver.received.empty()
    assert Chore.objects.get().done_at is not None

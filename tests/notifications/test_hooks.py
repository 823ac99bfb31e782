"""What a service hears of its own confirmations, at a real web server that checks the signature."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
import standardwebhooks
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.utils.dateparse import parse_datetime

from confirmhub.confirmations import ledger
from confirmhub.confirmations.models import Hook, Notice
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result, Verdict
from confirmhub.notifications import delivery
from confirmhub.notifications.channels.webhook import new_secret
from tests.confirmations.clock import make_overdue
from tests.factories import decide, redeem
from tests.notifications.receiver import Receiver, answer
from tests.notifications.smtp import Sink
from tests.notifications.support import DELETE, work

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture(autouse=True)
def mailer(sink: Sink, settings: Any) -> None:
    settings.MAILERS = {"default": {"OPTIONS": {"host": "127.0.0.1", "port": sink.port, "timeout": 5}}}


@pytest.fixture
def hook(agent: Principal, receiver: Receiver) -> Hook:
    """The hook of the service that asks."""
    secrets = f"{new_secret()}\n{new_secret()}"
    return Hook.objects.create(client_id=agent.client_id, url=receiver.url(), secrets=secrets)


def heard(receiver: Receiver, hook: Hook) -> dict[str, Any]:
    """The next event, checked with each of the secrets."""
    posted = receiver.next()
    for secret in hook.secrets.split():
        standardwebhooks.Webhook(secret).verify(posted.body, posted.headers)
    found: dict[str, Any] = json.loads(posted.body)
    return found


def test_a_service_hears_what_was_decided_and_what_came_of_it_and_no_argument(
    agent: Principal, alice: User, hook: Hook, receiver: Receiver
) -> None:
    asked = ledger.request(requester=agent, action=DELETE, summary="secret-summary")
    decide(asked, alice, reason="secret-reason")
    work(receiver)
    settled = heard(receiver, hook)
    receipt = redeem(asked, agent, action=DELETE)
    ledger.report_outcome(receipt=receipt, result=Result.FAILED, detail="secret-detail")
    work(receiver)
    outcome = heard(receiver, hook)

    assert settled["type"] == "confirmation.settled"
    assert settled["data"]["id"] == str(asked.id)
    assert settled["data"]["status"] == "approved"
    assert settled["data"]["action"] == "delete_file"
    assert settled["data"]["digest"] == DELETE.digest.hex()
    assert settled["data"]["result"] is None
    assert outcome["type"] == "confirmation.outcome"
    assert outcome["data"]["status"] == "redeemed"
    assert outcome["data"]["result"] == "failed"
    for name in ("requested_at", "decide_by", "settled_at", "redeem_by", "redeemed_at"):
        assert parse_datetime(outcome["data"][name]) is not None
    assert "secret" not in json.dumps([settled, outcome])
    assert receiver.received.empty()


@pytest.mark.parametrize("how", ["denied", "cancelled", "expired"])
def test_a_service_hears_of_each_way_in_which_a_question_ends(
    agent: Principal, alice: User, hook: Hook, receiver: Receiver, how: str
) -> None:
    asked = ledger.request(requester=agent, action=DELETE)
    if how == "denied":
        decide(asked, alice, Verdict.DENY)
    elif how == "cancelled":
        ledger.cancel(confirmation_id=asked.id, requester=agent)
    else:
        make_overdue(asked, requested_at=Now() - 2 * MINUTE, decide_by=Now() - MINUTE)
        ledger.expire_due(limit=10)

    work(receiver)

    found = heard(receiver, hook)
    assert found["type"] == "confirmation.settled"
    assert found["data"]["status"] == how


@pytest.mark.parametrize("kind", ["revoked", "lapsed"])
def test_a_service_hears_that_an_approval_is_of_no_use_any_more(
    agent: Principal, alice: User, hook: Hook, receiver: Receiver, kind: str
) -> None:
    asked = decide(ledger.request(requester=agent, action=DELETE), alice)
    work(receiver)
    heard(receiver, hook)
    if kind == "revoked":
        ledger.revoke(confirmation_id=asked.id, revoker=alice, reason="Not now.")
    else:
        make_overdue(
            asked, requested_at=Now() - 3 * MINUTE, decide_by=Now() - 2 * MINUTE, redeem_by=Now() - MINUTE
        )
        ledger.expire_due(limit=10)

    work(receiver)

    assert heard(receiver, hook)["type"] == f"confirmation.{kind}"


def test_no_other_service_hears_of_it(agent: Principal, alice: User, hook: Hook, receiver: Receiver) -> None:
    Hook.objects.create(client_id="another", url=receiver.url("/other"), secrets=new_secret())

    decide(ledger.request(requester=agent, action=DELETE), alice)
    work(receiver)

    assert receiver.next().path == "/hook"
    assert receiver.received.empty()


def test_a_hook_that_is_switched_off_or_moved_to_another_service_hears_nothing(
    agent: Principal, alice: User, hook: Hook, receiver: Receiver
) -> None:
    decide(ledger.request(requester=agent, action=DELETE), alice)
    Hook.objects.update(client_id="another")

    work(receiver)

    assert receiver.received.empty()
    assert Notice.objects.get(hook=hook).withdrawn_at is not None


def test_a_service_that_is_down_is_tried_for_longer_than_a_person_and_under_the_same_id(
    agent: Principal, alice: User, hook: Hook, receiver: Receiver
) -> None:
    receiver.answers["/hook"] = answer(503)
    decide(ledger.request(requester=agent, action=DELETE), alice)
    for _ in range(delivery.ATTEMPTS + 1):
        work(receiver)
        delivery.breaker.clear()
        Notice.objects.update(due_at=Now() - MINUTE)
    receiver.answers.clear()

    work(receiver)

    ids = {receiver.next().headers["webhook-id"] for _ in range(delivery.ATTEMPTS + 2)}
    assert len(ids) == 1
    assert Notice.objects.get(hook=hook).sent_at is not None

"""What docs/api.md says of webhooks is what they carry."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.dateparse import parse_datetime
from pytest_django import Settings

from confirmhub.confirmations import queries
from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.sending import Kind
from confirmhub.notifications import hooks, messages
from confirmhub.notifications.channels.base import Target
from confirmhub.notifications.channels.webhook import Webhook, new_secret
from tests.factories import decide, make_pending
from tests.notifications.receiver import Receiver

pytestmark = pytest.mark.django_db
TEXT = (Path(__file__).resolve().parents[2] / "docs/api.md").read_text(encoding="utf-8")
SAID: dict[str, dict[str, Any]] = {
    example["type"]: example
    for block in re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    if "data" in (example := json.loads(block))
}
TIMES = ("timestamp", "requested_at", "asked_at", "decide_by", "settled_at", "redeem_by", "redeemed_at")


def shape(found: Any) -> Any:
    """The same with the kind of each value in its place; a time is one only as RFC 3339 writes it."""
    if isinstance(found, dict):
        return {name: moment(value) if name in TIMES else shape(value) for name, value in found.items()}
    return type(found).__name__


def moment(value: Any) -> str:
    if value is None:
        return "none"
    at = parse_datetime(value) if re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}(\.\d{6})?Z", value) else None
    return "a time" if at else f"no time: {value}"


def sent(message: messages.Message, receiver: Receiver) -> Any:
    Webhook(receiver.post).send(message=message, target=Target(receiver.url(), (new_secret(),)))
    return json.loads(receiver.next().body)


def compose(asked: Any, agent: Principal, *, kind: str, to: User) -> messages.Message:
    found = queries.get_for_requester(confirmation_id=asked.id, requester=agent)
    notice = LeasedNotice(7, kind, found.id, to.pk, None, 1)
    return messages.compose(notice=notice, confirmation=found, recipient=to)


def test_a_persons_webhook_carries_what_is_documented(
    agent: Principal, alice: User, receiver: Receiver, settings: Settings
) -> None:
    asked = make_pending(agent)

    posted = sent(compose(asked, agent, kind="asked", to=alice), receiver)
    assert shape(posted) == shape(SAID["notice.asked"])

    settings.NOTICE_ARGUMENTS = True
    decide(asked, alice)
    settled = sent(compose(asked, agent, kind="settled", to=alice), receiver)
    known = shape(SAID["notice.asked"])["data"]
    del known["decide_by"]
    assert shape(settled)["data"] == known | {"settled_at": "a time", "arguments": "list"}


def test_a_services_hook_carries_what_is_documented(agent: Principal, alice: User) -> None:
    asked = make_pending(agent)
    decide(asked, alice)

    found = queries.get_for_requester(confirmation_id=asked.id, requester=agent)
    posted = hooks.payload(kind=Kind.SETTLED, confirmation=found)

    assert shape(posted) == shape(SAID["confirmation.settled"])


def test_each_type_of_event_is_documented(alice: User) -> None:
    told = set(re.findall(r"`((?:notice|confirmation)\.\w+)`", TEXT))
    to_people = {*messages.ASKING, Kind.SETTLED, messages.compose_trial(number=1, recipient=alice).kind}
    to_services = {Kind.SETTLED, Kind.REVOKED, Kind.LAPSED, Kind.OUTCOME}

    assert told == {f"notice.{kind}" for kind in to_people} | {f"confirmation.{kind}" for kind in to_services}
    assert set(Kind) == set(messages.ASKING) | to_services

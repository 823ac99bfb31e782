"""One notice at a time, to a real mail server."""

from __future__ import annotations

import datetime as dt
import email
import json
import re
import socket
from email.policy import SMTP
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db.models.functions import Now

from confirmhub.confirmations import ledger, outbox, queries
from confirmhub.confirmations.errors import NotFound
from confirmhub.confirmations.models import Confirmation, Notice, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.notifications import delivery
from tests.confirmations.clock import make_overdue
from tests.factories import make_user
from tests.invariants import proves
from tests.notifications.smtp import Sink
from tests.notifications.support import DELETE, delete

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture(autouse=True)
def mailer(sink: Sink, settings: pytest.FixtureRequest) -> None:
    settings.MAILERS = {"default": {"OPTIONS": {"host": "127.0.0.1", "port": sink.port, "timeout": 5}}}


@pytest.fixture
def asked(agent: Principal) -> Confirmation:
    return ledger.request(requester=agent, action=DELETE)


def attempt() -> Notice:
    """Lease the one notice that is due, and deliver it."""
    (leased,) = outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL)
    delivery.deliver(notice_ids=[leased.id])
    return Notice.objects.get(id=leased.id)


def test_a_notice_is_sent_in_text_and_html(asked: Confirmation, sink: Sink) -> None:
    notice = attempt()

    mail = sink.next()
    assert notice.sent_at is not None
    assert mail["To"] == "alice@example.org"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
    assert str(asked.id) in mail.get_body(("plain",)).get_content()


def test_a_notice_that_was_sent_is_not_sent_again(asked: Confirmation, sink: Sink) -> None:
    notice = attempt()

    delivery.deliver(notice_ids=[notice.id])

    sink.next()
    assert sink.received.empty()


def test_a_task_that_comes_after_its_lease_leaves_the_notice_to_the_next(
    asked: Confirmation, sink: Sink
) -> None:
    (leased,) = outbox.lease_notices(limit=1, lease=MINUTE, lane=outbox.Lane.MAIL)
    Notice.objects.update(lease_until=Now() - MINUTE)

    delivery.deliver(notice_ids=[leased.id])

    assert sink.received.empty()
    assert Notice.objects.get().sent_at is None


@pytest.mark.parametrize("address", ["", "nobody", "alice@example.org\nBcc: eve@example.net"])
def test_a_person_without_a_usable_address_is_given_up_at_once(
    asked: Confirmation, alice: User, sink: Sink, address: str
) -> None:
    User.objects.update(email=address)

    notice = attempt()

    assert notice.given_up_at is not None
    assert notice.sent_at is None
    assert sink.received.empty()


def test_a_person_who_left_is_not_told(asked: Confirmation, alice: User, sink: Sink) -> None:
    User.objects.update(is_active=False)

    assert attempt().withdrawn_at is not None
    assert sink.received.empty()


def test_a_confirmation_that_was_settled_meanwhile_is_not_asked_for(
    asked: Confirmation, agent: Principal, sink: Sink
) -> None:
    ledger.cancel(confirmation_id=asked.id, requester=agent)

    assert attempt().withdrawn_at is not None
    assert sink.received.empty()


def test_an_address_that_is_refused_for_good_is_given_up_at_once(asked: Confirmation, sink: Sink) -> None:
    sink.answers["alice@example.org"] = "550 no such user"

    assert attempt().given_up_at is not None


@proves("notices:given-up-seen")
def test_a_notice_that_is_given_up_stands_in_the_log_of_what_it_told_of(
    asked: Confirmation, alice: User, sink: Sink
) -> None:
    sink.answers["alice@example.org"] = "550 no such user"

    attempt()

    event = asked.events.get(kind="unsent")
    assert json.loads(event.detail) == {
        "channel": "",
        "notice": "asked",
        "to": f"user {alice.pk}",
        "why": "The mail server refuses the address.",
    }
    assert queries.log_is_intact(confirmation_id=asked.id)


def test_an_address_that_is_refused_for_now_is_tried_again_later(asked: Confirmation, sink: Sink) -> None:
    sink.answers["alice@example.org"] = "450 come back"

    notice = attempt()

    assert notice.given_up_at is None
    assert notice.due_at > notice.created_at + delivery.FIRST_PAUSE
    assert outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL) == []


def test_a_mail_server_that_stays_away_is_given_up_in_the_end(
    asked: Confirmation, settings: pytest.FixtureRequest
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        settings.MAILERS = {"default": {"OPTIONS": {"host": "127.0.0.1", "port": port, "timeout": 5}}}
        for _ in range(delivery.ATTEMPTS - 1):
            assert attempt().given_up_at is None
            Notice.objects.update(due_at=Now() - MINUTE)

        assert attempt().given_up_at is not None


def test_without_a_mail_server_each_notice_becomes_a_file_that_a_mail_program_opens(
    asked: Confirmation, agent: Principal, settings: pytest.FixtureRequest, tmp_path: Path
) -> None:
    ledger.request(requester=agent, action=delete("/srv/demo/other.txt"))
    backend = "confirmhub.notifications.channels.folder.EmailBackend"
    settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": {"file_path": str(tmp_path)}}}

    leased = outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL)
    delivery.deliver(notice_ids=[notice.id for notice in leased])

    files = sorted(tmp_path.iterdir())
    assert {file.suffix for file in files} == {".eml"}
    mails = [email.message_from_bytes(file.read_bytes(), policy=SMTP) for file in files]
    texts = [mail.get_body(("plain",)).get_content() for mail in mails]
    links = [re.findall("/confirm/[-0-9a-f]+", text) for text in texts]
    assert sorted(links) == sorted([f"/confirm/{row.id}"] for row in Confirmation.objects.all())
    assert all(file.read_bytes().endswith(b"--\r\n") for file in files)  # and nothing after the last part


def test_pauses_grow_up_to_a_limit() -> None:
    pauses = [delivery.pause_after(attempts=attempts) for attempts in (0, 1, 2, 3, 8, 10_000)]

    assert pauses == sorted(pauses)
    assert pauses[1] == delivery.FIRST_PAUSE
    assert pauses[3] == 4 * delivery.FIRST_PAUSE
    assert pauses[-1] == delivery.LONGEST_PAUSE


@pytest.mark.parametrize("mode", ["confirm", "approve"])
@pytest.mark.parametrize("escalated", [False, True], ids=["as-asked", "escalated"])
@pytest.mark.parametrize("self_approval", [False, True], ids=["by-others", "by-oneself-too"])
def test_read_many_at_once_or_one_by_one_the_same_people_may_see_a_confirmation(
    agent: Principal, alice: User, mode: str, *, escalated: bool, self_approval: bool
) -> None:
    first, second = (Group.objects.create(name=name) for name in ("First", "Second"))
    people = {
        name: make_user(name, is_active=name != "left")
        for name in ("first", "second", "both", "left", "nobody")
    } | {"alice": alice}
    for name, groups in {
        "first": [first],
        "second": [second],
        "both": [first, second],
        "left": [first, second],
        "alice": [first],
    }.items():
        people[name].groups.set(groups)
    fields: dict[str, Any] = {}
    if mode == "approve":
        fields = {
            "approver_group": first,
            "self_approval": self_approval,
            "escalate_after": MINUTE,
            "escalation_group": second,
        }
    Rule.objects.create(name="rule", rank=1, mode=mode, **fields)
    asked = ledger.request(requester=agent, action=DELETE)
    if escalated and mode == "approve":
        make_overdue(asked, escalate_at=Now() - MINUTE)
        assert ledger.escalate_due(limit=1) == 1

    together = queries.get_for_approvers(pairs=[(asked.id, user.pk) for user in people.values()])

    seen = {name for name, user in people.items() if (asked.id, user.pk) in together}
    assert seen == {name for name, user in people.items() if sees(asked, user)}
    assert "alice" in seen
    assert not {"left", "nobody"} & seen


def sees(confirmation: Confirmation, user: User) -> bool:
    try:
        queries.get_for_approver(confirmation_id=confirmation.id, approver=user)
    except NotFound:
        return False
    return True

"""One notice to a person becomes one for each way they have chosen, and each fares by itself."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.db.models.functions import Now

from confirmhub.confirmations import ledger, outbox
from confirmhub.confirmations.models import Confirmation, Notice, Rule
from confirmhub.confirmations.outbox import Lane
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Verdict
from confirmhub.notifications import delivery
from confirmhub.notifications import relay as relays
from confirmhub.notifications.models import Destination
from tests.confirmations.clock import make_overdue
from tests.factories import decide, make_user
from tests.invariants import proves
from tests.notifications.receiver import Receiver, answer
from tests.notifications.smtp import Sink
from tests.notifications.support import DELETE, chooses, delete, work

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture(autouse=True)
def mailer(sink: Sink, settings: Any) -> None:
    settings.MAILERS = {"default": {"OPTIONS": {"host": "127.0.0.1", "port": sink.port, "timeout": 5}}}


def test_each_way_that_a_person_has_chosen_is_taken_once(
    agent: Principal, alice: User, receiver: Receiver, sink: Sink
) -> None:
    chooses(alice, "email")
    for channel in ("slack", "teams", "webhook"):
        chooses(alice, channel, receiver.url(f"/{channel}"))
    chooses(alice, "ntfy", receiver.url("/ntfy/topic"))
    chooses(alice, "slack", receiver.url("/off"), is_active=False)

    ledger.request(requester=agent, action=DELETE)
    work(receiver)

    paths = Counter(receiver.next().path for _ in range(4))
    assert paths == Counter(("/slack", "/teams", "/webhook", "/ntfy/"))
    sink.next()
    assert receiver.received.empty()
    assert sink.received.empty()
    assert Notice.objects.exclude(sent_at=None).count() == 5


def test_whoever_turned_all_of_them_off_gets_mail(
    agent: Principal, alice: User, receiver: Receiver, sink: Sink
) -> None:
    chooses(alice, "slack", receiver.url(), is_active=False)

    ledger.request(requester=agent, action=DELETE)
    work(receiver)

    sink.next()
    assert receiver.received.empty()


@proves("notices:apart")
@proves("notices:given-up-seen")
def test_a_way_that_fails_holds_up_no_other_and_is_given_up_alone(
    agent: Principal, alice: User, receiver: Receiver, sink: Sink
) -> None:
    broken = chooses(alice, "slack", receiver.url("/broken"))
    chooses(alice, "email")
    receiver.answers["/broken"] = answer(500)

    asked = ledger.request(requester=agent, action=DELETE)
    for _ in range(delivery.ATTEMPTS):
        work(receiver)
        delivery.breaker.clear()
        Notice.objects.update(due_at=Now() - MINUTE)
    work(receiver)

    sink.next()
    assert sink.received.empty()
    assert receiver.received.qsize() == delivery.ATTEMPTS
    assert Notice.objects.get(channel="email").sent_at is not None
    assert Notice.objects.get(channel="slack").given_up_at is not None
    detail = json.loads(asked.events.get(kind="unsent").detail)
    assert detail["channel"] == "slack"
    assert detail["why"] == "The server answered 500."
    broken.refresh_from_db()
    assert broken.failure == "The server answered 500."


def test_whoever_can_be_reached_in_no_way_they_chose_gets_mail(
    agent: Principal, alice: User, receiver: Receiver, sink: Sink
) -> None:
    for path in ("/gone", "/gone-too"):
        chooses(alice, "slack", receiver.url(path))
        receiver.answers[path] = answer(410)

    ledger.request(requester=agent, action=DELETE)
    work(receiver)

    sink.next()
    assert sink.received.empty()
    assert Notice.objects.exclude(given_up_at=None).count() == 2


def test_whoever_was_reached_in_one_way_gets_no_mail_for_another_that_failed(
    agent: Principal, alice: User, receiver: Receiver, sink: Sink
) -> None:
    chooses(alice, "slack", receiver.url("/gone"))
    chooses(alice, "teams", receiver.url("/teams"))
    receiver.answers["/gone"] = answer(410)

    ledger.request(requester=agent, action=DELETE)
    work(receiver)

    assert sink.received.empty()
    assert Notice.objects.exclude(given_up_at=None).count() == 1


def test_a_server_that_failed_a_moment_ago_is_not_waited_for_by_the_next(
    agent: Principal, alice: User, receiver: Receiver
) -> None:
    chooses(alice, "slack", receiver.url("/broken"))
    receiver.answers["/broken"] = answer(503, Retry_After="60")
    ask_several(agent, 3)

    work(receiver)

    assert receiver.received.qsize() == 1
    due = Notice.objects.values_list("due_at", flat=True)
    assert all(at > Notice.objects.earliest("id").created_at + 14 * dt.timedelta(seconds=1) for at in due)


@proves("notices:apart")
def test_ways_that_hang_fill_their_own_lane_and_leave_mail_its_room(
    agent: Principal, alice: User, bob: User, receiver: Receiver
) -> None:
    chooses(alice, "slack", receiver.url("/hangs"))
    many = relays.AT_ONCE[Lane.WEB] + 3
    ask_several(agent, many)
    sent: list[int] = []
    relay = relays.Relay(send=lambda _, kwargs: sent.extend(kwargs["notice_ids"]), pulse=lambda: None)

    relay.forward()
    assert len(sent) == relays.AT_ONCE[Lane.WEB]
    ledger.request(requester=Principal("agent-2", str(bob.pk)), action=DELETE)
    relay.forward()

    assert len(sent) == relays.AT_ONCE[Lane.WEB] + 1
    assert Notice.objects.get(id=sent[-1]).recipient_id == bob.pk


@pytest.mark.parametrize("change", ["off", "removed"])
def test_a_way_that_is_not_wanted_any_more_is_not_taken_and_mail_comes_instead(
    agent: Principal, alice: User, receiver: Receiver, sink: Sink, change: str
) -> None:
    chosen = chooses(alice, "slack", receiver.url())
    ledger.request(requester=agent, action=DELETE)
    relays.Relay(send=lambda *_: None, pulse=lambda: None).forward()
    if change == "off":
        Destination.objects.update(is_active=False)
    else:
        chosen.delete()

    delivery.deliver(notice_ids=[Notice.objects.get().pk], post=receiver.post)
    work(receiver)

    assert Notice.objects.get(channel="slack").withdrawn_at is not None
    assert receiver.received.empty()
    sink.next()
    assert sink.received.empty()


@pytest.mark.django_db(transaction=True)
def test_of_two_ways_that_end_at_once_the_second_sees_that_none_is_left(
    agent: Principal, alice: User, receiver: Receiver
) -> None:
    for path in ("/one", "/two"):
        chooses(alice, "slack", receiver.url(path))
    ledger.request(requester=agent, action=DELETE)
    relays.Relay(send=lambda *_: None, pulse=lambda: None).forward()
    one, two = Notice.objects.values_list("pk", flat=True)
    started = threading.Barrier(2, timeout=20)

    def end(notice_id: int) -> None:
        try:
            with transaction.atomic():
                outbox.withdraw(notice_id=notice_id, or_else=delivery.MAIL)
                # Both have ended theirs before either is committed, unless one waits for the other.
                with contextlib.suppress(threading.BrokenBarrierError):
                    started.wait(timeout=0.5)
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(end, (one, two)))

    assert Notice.objects.filter(channel="email", destination=0).count() == 1


def test_whoever_is_given_up_on_and_told_another_way_is_one_step(
    agent: Principal, alice: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    chooses(alice, "slack", receiver.url("/gone"))
    receiver.answers["/gone"] = answer(410)
    ledger.request(requester=agent, action=DELETE)

    def die(*_: Any, **__: Any) -> None:
        raise SystemExit("killed here")

    relays.Relay(send=lambda *_: None, pulse=lambda: None).forward()
    monkeypatch.setattr(Notice.objects, "bulk_create", die)
    with pytest.raises(SystemExit):
        delivery.deliver(notice_ids=[Notice.objects.get().pk], post=receiver.post)

    assert Notice.objects.get().given_up_at is None


def test_spreading_twice_changes_nothing(agent: Principal) -> None:
    ledger.request(requester=agent, action=DELETE)
    (leased,) = outbox.lease_notices(limit=1, lease=MINUTE, lane=outbox.Lane.MAIL)

    for over in ([(5, "slack"), (6, "email")], [(7, "ntfy")]):
        outbox.spread(notice_id=leased.id, over=over)

    assert sorted(Notice.objects.values_list("destination", "channel")) == [(5, "slack"), (6, "email")]


# --- what settles a question follows what asked it


@pytest.fixture
def approvers(alice: User, bob: User) -> list[User]:
    group = Group.objects.create(name="Payments")
    Rule.objects.create(name="two", rank=1, mode="approve", approver_group=group, decide_within=MINUTE * 60)
    found = [bob, make_user("carol"), make_user("dave")]
    for person in found:
        person.groups.add(group)
    return found


def addressees(sink: Sink, number: int) -> list[tuple[str, str]]:
    mails = [sink.next() for _ in range(number)]
    assert sink.received.empty()
    return sorted((mail["To"], mail["Subject"].partition(" (")[0]) for mail in mails)


def test_whoever_was_asked_hears_that_another_has_decided(
    agent: Principal, approvers: list[User], receiver: Receiver, sink: Sink
) -> None:
    asked = ledger.request(requester=agent, action=DELETE)
    work(receiver)
    threads = {sink.next()["References"] for _ in approvers}

    decide(asked, approvers[0], Verdict.DENY)
    work(receiver)

    mails = [sink.next() for _ in range(3)]
    assert sink.received.empty()
    assert {mail["To"] for mail in mails} == {f"{name}@example.org" for name in ("alice", "carol", "dave")}
    assert {mail["Subject"].partition(" (")[0] for mail in mails} == {"confirmhub: A confirmation was denied"}
    assert {mail["References"] for mail in mails} == threads
    assert len(threads) == 1


def test_whoever_was_not_reached_before_it_was_settled_hears_of_neither(
    agent: Principal, approvers: list[User], receiver: Receiver, sink: Sink
) -> None:
    asked = ledger.request(requester=agent, action=DELETE)
    decide(asked, approvers[0], Verdict.DENY)

    work(receiver)

    assert addressees(sink, 1) == [("alice@example.org", "confirmhub: A confirmation was denied")]
    assert Notice.objects.exclude(withdrawn_at=None).count() == 3


@pytest.mark.parametrize("how", ["cancelled", "expired", "denied"])
def test_a_question_that_ends_without_a_decision_is_taken_back_from_those_who_were_asked(
    agent: Principal, approvers: list[User], receiver: Receiver, sink: Sink, how: str
) -> None:
    asked = ledger.request(requester=agent, action=DELETE)
    work(receiver)
    addressees(sink, 3)

    if how == "cancelled":
        ledger.cancel(confirmation_id=asked.id, requester=agent)
    elif how == "denied":
        root = make_user("root", is_superuser=True, is_staff=True)
        ledger.deny(confirmation_id=asked.id, operator=root, reason="A drill.")
    else:
        overdue(asked)
        ledger.expire_due(limit=10)
    work(receiver)

    told = {address for address, _ in addressees(sink, 4 if how == "denied" else 3)}
    assert told >= {f"{name}@example.org" for name in ("bob", "carol", "dave")}


def test_those_who_have_not_decided_are_reminded_and_the_next_group_is_asked(
    agent: Principal, approvers: list[User], receiver: Receiver, sink: Sink
) -> None:
    second = Group.objects.create(name="Second line")
    make_user("erin").groups.add(second)
    Rule.objects.update(
        approvals_needed=2,
        escalate_after=MINUTE,
        escalation_group=second,
        remind_before=MINUTE * 59,
    )
    asked = ledger.request(requester=agent, action=DELETE)
    decide(asked, approvers[0])
    work(receiver)
    addressees(sink, 3)
    make_overdue(asked, remind_at=Now() - MINUTE, escalate_at=Now() - MINUTE)

    ledger.remind_due(limit=10)
    ledger.escalate_due(limit=10)
    work(receiver)

    waits = "confirmhub: Time runs out: a confirmation waits"
    others = "confirmhub: A confirmation was passed on to you"
    assert addressees(sink, 3) == [
        ("carol@example.org", waits),
        ("dave@example.org", waits),
        ("erin@example.org", others),
    ]


def overdue(confirmation: Confirmation) -> None:
    make_overdue(confirmation, requested_at=Now() - 2 * MINUTE, decide_by=Now() - MINUTE)


def ask_several(agent: Principal, number: int) -> None:
    for index in range(number):
        ledger.request(requester=agent, action=delete(f"/srv/{index}"))

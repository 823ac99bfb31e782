"""The relay as a thread, with a list in the broker's place."""

from __future__ import annotations

import datetime as dt
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from confirmhub.confirmations import ledger, outbox
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Chore, Notice
from confirmhub.confirmations.outbox import Lane
from confirmhub.confirmations.principals import Principal
from confirmhub.notifications import relay as relays
from confirmhub.notifications.tasks import DELIVER, EXPIRE_DUE
from tests.notifications.smtp import SOON
from tests.notifications.support import DELETE, eventually

type Sent = queue.Queue[tuple[str, dict[str, Any]]]


@contextmanager
def running(relay: relays.Relay) -> Iterator[None]:
    thread = threading.Thread(target=relay.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        relay.stop()
        thread.join(timeout=5)
    assert not thread.is_alive()


@pytest.fixture
def sent(transactional_db: None) -> Iterator[Sent]:
    """What a running relay sends."""
    sent: Sent = queue.Queue()
    with running(relays.Relay(send=lambda *call: sent.put(call), pulse=lambda: None)):
        yield sent


def ask(agent: Principal, number: int) -> None:
    arguments = {"path": f"/srv/{number}"}
    action = Action(audience=DELETE.audience, name=DELETE.name, arguments=arguments)
    ledger.request(requester=agent, action=action)


def test_a_committed_notice_is_sent_on_once(agent: Principal, sent: Sent) -> None:
    ask(agent, 1)

    task, kwargs = sent.get(timeout=SOON)
    assert task == DELIVER
    assert [notice.id for notice in outbox.find_leased(notice_ids=kwargs["notice_ids"])] == kwargs[
        "notice_ids"
    ]
    with pytest.raises(queue.Empty):
        sent.get(timeout=1.5)  # longer than the poll


def test_a_notification_that_gets_lost_costs_a_notice_no_more_than_the_next_look(
    agent: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "CHANNEL", "where_nobody_says_a_word")
    idle = threading.Event()
    sent: Sent = queue.Queue()

    class Relay(relays.Relay):
        def forward(self) -> int:
            if not (taken := super().forward()):
                idle.set()
            return taken

    with running(Relay(send=lambda *call: sent.put(call), pulse=lambda: None)):
        assert idle.wait(SOON)
        ask(agent, 1)

        assert sent.get(timeout=SOON)[0] == DELIVER


def test_the_relay_outlives_its_connections(agent: Principal, sent: Sent) -> None:
    """As after a restart of Postgres: every other connection to this database is cut."""
    ask(agent, 1)
    sent.get(timeout=SOON)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert len(cursor.fetchall()) >= 2

    ask(agent, 2)

    assert sent.get(timeout=SOON)[0] == DELIVER


def test_a_broker_that_fails_costs_a_notice_its_lease_and_no_more(agent: Principal) -> None:
    calls: queue.Queue[int] = queue.Queue()

    def refuse(task: str, kwargs: dict[str, Any]) -> None:
        calls.put(*kwargs["notice_ids"])
        raise OSError("no broker")

    with running(relays.Relay(send=refuse, pulse=lambda: None)):
        ask(agent, 1)
        first = calls.get(timeout=SOON)
        expire_leases()
        assert calls.get(timeout=SOON) == first


def test_no_more_notices_are_leased_than_can_be_sent_within_a_lease(agent: Principal) -> None:
    most = relays.AT_ONCE[Lane.MAIL]
    for number in range(most + 3):
        ask(agent, number)
    sent: list[int] = []
    tasks: list[list[int]] = []

    def send(_task: str, kwargs: dict[str, Any]) -> None:
        tasks.append(kwargs["notice_ids"])
        sent.extend(kwargs["notice_ids"])

    relay = relays.Relay(send=send, pulse=lambda: None)

    relay.forward()
    relay.forward()
    assert len(sent) == most
    assert max(map(len, tasks)) == relays.TOGETHER[Lane.MAIL]

    for notice_id in sent[:2]:
        outbox.mark_sent(notice_id=notice_id)
    relay.forward()
    assert len(set(sent)) == len(sent) == most + 2


def test_ticks_that_queued_up_are_run_once(transactional_db: None) -> None:
    for slot in (1, 2, 3):
        outbox.enqueue_chore(task=EXPIRE_DUE, slot=slot)
    outbox.enqueue_chore(task="of.another.version", slot=1)
    sent: list[object] = []

    relays.Relay(send=lambda *call: sent.append(call), pulse=lambda: None).forward()

    newest = Chore.objects.get(task=EXPIRE_DUE, slot=3)
    assert sent == [(EXPIRE_DUE, {"chore_id": newest.id})]
    assert list(Chore.objects.filter(done_at=None)) == [newest]


def test_the_pulse_is_felt_while_the_relay_runs(transactional_db: None) -> None:
    felt = threading.Event()

    with running(relays.Relay(send=lambda *_: None, pulse=felt.set)):
        assert felt.wait(SOON)


def expire_leases() -> None:
    leased = Notice.objects.exclude(lease_until=None)
    eventually(lambda: leased.update(lease_until=Now() - dt.timedelta(minutes=1)) == 1)

"""Nothing is lost, whichever broker carries it, when the worker is killed and the broker forgets."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import standardwebhooks
from django.contrib.auth.models import User
from django.db.models.functions import Now
from redis import Redis

from confirmhub.confirmations import ledger
from confirmhub.confirmations.models import Notice
from confirmhub.confirmations.principals import Principal
from confirmhub.notifications.models import Destination
from confirmhub.ops import checked
from confirmhub.ops.errors import CannotStart
from tests.invariants import proves
from tests.notifications import brokers
from tests.notifications.receiver import Posted, Receiver
from tests.notifications.smtp import Sink
from tests.notifications.support import Start, chooses, delete, eventually

type Ways = tuple[Sink, Receiver, Destination]

NUMBER = 40  # notices; some are with the broker, some with a thread, and some are sent when it happens


@pytest.fixture
def both_ways(alice: User, sink: Sink, plain_receiver: Receiver) -> Ways:
    """Where Alice is told: by mail, and by a webhook."""
    chooses(alice, "email")
    return sink, plain_receiver, chooses(alice, "webhook", plain_receiver.url())


def verified(posted: Posted, destination: Destination) -> str:
    """The id of a webhook, once the receiver's library has verified its signature and its time."""
    standardwebhooks.Webhook(destination.secrets).verify(posted.body, posted.headers)
    return posted.headers["webhook-id"]


@proves("notices:at-least-once")
@pytest.mark.parametrize("broker", [brokers.memory, brokers.redis, brokers.rabbitmq])
def test_a_worker_that_is_killed_in_the_middle_costs_no_notice(
    both_ways: Ways,
    agent: Principal,
    start: Start,
    tmp_path: Path,
    broker: Callable[[Path], AbstractContextManager[str]],
) -> None:
    sink, receiver, destination = both_ways
    with broker(tmp_path) as url:
        worker = start("worker", CELERY_BROKER_URL=url)
        for number in range(NUMBER):
            ledger.request(requester=agent, action=delete(f"/srv/{number}"))
        mails = {sink.next(within=60)["Message-ID"] for _ in range(NUMBER // 4)}
        hooks = {verified(receiver.next(within=60), destination)}
        kill(worker)
        if url.startswith("redis:"):
            Redis.from_url(url).flushall()
        assert Notice.objects.filter(sent_at=None).exists()

        Notice.objects.filter(sent_at=None).update(lease_until=Now(), due_at=Now())  # the leases end
        again = start("worker", CELERY_BROKER_URL=url)
        eventually(lambda: not Notice.objects.filter(sent_at=None).exists(), within=60)
        kill(again)

    while not sink.received.empty():
        mails.add(sink.next()["Message-ID"])
    while not receiver.received.empty():
        hooks.add(verified(receiver.next(), destination))
    assert len(mails) == len(hooks) == NUMBER
    assert Notice.objects.count() == 2 * NUMBER
    assert not Destination.objects.exclude(failure="").exists()


def kill(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    worker.wait(timeout=10)


@pytest.mark.parametrize(
    "url",
    ["kafka://localhost", "sqs://", "pgmq://localhost", "localhost:6379", "redis://", "amqps:host", "x"],
)
def test_a_broker_of_a_kind_that_was_never_tried_stops_the_start(url: str) -> None:
    with pytest.raises(CannotStart, match="CELERY_BROKER_URL must begin with one of memory://, redis://"):
        checked.check(os.environ | {"CELERY_BROKER_URL": url})


def test_what_a_bad_brokers_url_holds_is_not_repeated() -> None:
    with pytest.raises(CannotStart) as refused:
        checked.check(os.environ | {"CELERY_BROKER_URL": "kafka://user:pa55word@localhost"})

    assert "pa55word" not in str(refused.value)

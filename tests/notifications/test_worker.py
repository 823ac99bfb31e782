"""The worker and beat as processes: from the commit to the mail, whatever is killed."""

from __future__ import annotations

import datetime as dt
import subprocess
import time

from django.db import transaction
from django.db.models.functions import Now

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Notice
from confirmhub.confirmations.principals import Principal
from tests.confirmations.clock import make_overdue
from tests.notifications.smtp import Sink
from tests.notifications.support import DELETE, Start, eventually, hearing


def settled() -> bool:
    return not Notice.objects.filter(sent_at=None, given_up_at=None).exists()


def test_a_notice_arrives_within_seconds_of_the_commit(
    agent: Principal, sink: Sink, worker: subprocess.Popen[bytes]
) -> None:
    ledger.request(requester=agent, action=DELETE)
    sink.next()  # the worker is up
    another = Action(audience=DELETE.audience, name="delete_file", arguments={"path": "/srv/b"})
    committed = time.monotonic()

    confirmation = ledger.request(requester=agent, action=another)

    mail = sink.next()
    assert time.monotonic() - committed < 5
    assert f"/confirm/{confirmation.id}" in mail.get_body(("plain",)).get_content()
    eventually(settled)
    assert sink.received.empty()


def test_a_transaction_that_is_rolled_back_tells_nobody(
    agent: Principal, sink: Sink, worker: subprocess.Popen[bytes]
) -> None:
    with transaction.atomic():
        ledger.request(requester=agent, action=DELETE)
        transaction.set_rollback(True)
    other = Action(audience=DELETE.audience, name="delete_file", arguments={"path": "/srv/other"})

    confirmation = ledger.request(requester=agent, action=other)

    assert str(confirmation.id) in sink.next()["Message-ID"]
    eventually(settled)
    assert sink.received.empty()


def test_beat_sweeps_what_is_past_its_time(
    agent: Principal, start: Start, worker: subprocess.Popen[bytes]
) -> None:
    confirmation = ledger.request(requester=agent, action=DELETE)
    eventually(settled)
    hour = dt.timedelta(hours=1)
    make_overdue(confirmation, requested_at=Now() - 2 * hour, decide_by=Now() - hour)

    with hearing("confirmhub_settled") as heard:
        start("beat")
        assert heard() == str(confirmation.id)

    confirmation.refresh_from_db()
    assert confirmation.status == "expired"
    assert confirmation.events.filter(kind="expired").count() == 1


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(
    agent: Principal, sink: Sink, start: Start, worker: subprocess.Popen[bytes]
) -> None:
    sink.open.clear()  # the mail is taken in, and not acknowledged
    confirmation = ledger.request(requester=agent, action=DELETE)
    first = sink.next_of(confirmation.id)
    worker.kill()
    worker.wait(timeout=5)
    sink.open.set()
    notice = Notice.objects.get(confirmation=confirmation)
    assert notice.sent_at is None

    Notice.objects.update(lease_until=Now())  # the lease ends
    start("worker")

    again = sink.next_of(confirmation.id)
    assert again["Message-ID"] == first["Message-ID"]
    eventually(settled)
    notice.refresh_from_db()
    assert notice.sent_at is not None
    assert notice.attempts == 2

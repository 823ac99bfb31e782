"""Leases: nobody gets what another holds, what a dead worker held comes back, what is given up is seen."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now

from confirmhub.confirmations import outbox
from confirmhub.confirmations.models import Chore, Notice
from confirmhub.confirmations.principals import Principal
from tests.factories import TRANSFER, make_pending

MINUTE = dt.timedelta(minutes=1)


def test_a_notice_is_leased_to_one_and_comes_back_when_the_lease_is_over(
    agent: Principal, alice: User
) -> None:
    pending = make_pending(agent)

    first = outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL)
    assert outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL) == []
    Notice.objects.update(lease_until=Now() - MINUTE)
    again = outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL)

    assert [(n.kind, n.confirmation_id, n.recipient_id, n.attempts) for n in first + again] == [
        ("asked", pending.id, alice.pk, 1),
        ("asked", pending.id, alice.pk, 2),
    ]


def test_what_was_sent_does_not_come_back(agent: Principal) -> None:
    make_pending(agent)
    [notice] = outbox.lease_notices(limit=10, lease=dt.timedelta(), lane=outbox.Lane.MAIL)

    outbox.mark_sent(notice_id=notice.id)
    outbox.mark_failed(notice_id=notice.id, retry_in=dt.timedelta(), give_up_after=1)

    assert outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL) == []
    assert Notice.objects.get().given_up_at is None


def test_what_failed_is_tried_again_later_and_given_up_at_last(agent: Principal) -> None:
    make_pending(agent)
    for _ in range(2):
        [notice] = outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL)
        outbox.mark_failed(notice_id=notice.id, retry_in=MINUTE, give_up_after=2)
        assert outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL) == []
        Notice.objects.update(due_at=Now() - MINUTE)

    assert outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL) == []
    assert Notice.objects.get().given_up_at is not None


def test_two_beats_write_one_tick(db: None) -> None:
    outbox.enqueue_chore(task="sweep", slot=1)
    outbox.enqueue_chore(task="sweep", slot=1)
    outbox.enqueue_chore(task="sweep", slot=2)

    first, second = outbox.lease_chores(limit=10, lease=MINUTE)
    assert outbox.lease_chores(limit=10, lease=MINUTE) == []
    outbox.mark_done(chore_id=first.id)
    Chore.objects.update(lease_until=None)

    assert outbox.lease_chores(limit=10, lease=MINUTE) == [second]


@pytest.mark.django_db(transaction=True)
def test_the_channel_rings_when_a_notice_or_a_chore_is_committed_and_not_before(agent: Principal) -> None:
    import psycopg

    from confirmhub.confirmations.dsn import conninfo

    with psycopg.connect(conninfo(), autocommit=True) as listener:
        listener.execute(f"LISTEN {outbox.CHANNEL}")
        with transaction.atomic():
            make_pending(agent)
            assert list(listener.notifies(timeout=0.05, stop_after=1)) == []
        assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1
        outbox.enqueue_chore(task="sweep", slot=1)
        assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1
    connection.close()


PLANS = ["", "hashjoin hashagg sort material", "hashjoin hashagg sort material mergejoin indexscan"]


@pytest.mark.parametrize("without", PLANS)
def test_no_plan_leases_more_than_it_may(agent: Principal, without: str) -> None:
    for number in range(9):
        make_pending(agent, action=replace(TRANSFER, arguments={"number": number}))
        outbox.enqueue_chore(task="sweep", slot=number)
    with transaction.atomic(), connection.cursor() as cursor:
        for way in without.split():
            cursor.execute(f"SET LOCAL enable_{way} = off")
        notices = outbox.lease_notices(limit=2, lease=MINUTE, lane=outbox.Lane.MAIL)
        chores = outbox.lease_chores(limit=2, lease=MINUTE)

    assert (len(notices), len(chores)) == (2, 2)

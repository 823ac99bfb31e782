"""Quiet hours delay what comes in them, and lose nothing."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from confirmhub.confirmations import ledger
from confirmhub.confirmations.models import Notice, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.notifications import quiet
from confirmhub.notifications.models import QuietHours
from tests.notifications.receiver import Receiver
from tests.notifications.smtp import Sink
from tests.notifications.support import DELETE, delete, work

NIGHT = QuietHours(starts=dt.time(22), ends=dt.time(7), zone="Europe/Berlin")
NOON = QuietHours(starts=dt.time(12), ends=dt.time(13, 30), zone="Asia/Kolkata")
HOUR = dt.timedelta(hours=1)


def at(text: str, zone: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("hours", "now", "ends"),
    [
        (NIGHT, "2026-11-30 21:59:59", None),
        (NIGHT, "2026-11-30 22:00", "2026-12-01 07:00"),
        (NIGHT, "2026-12-01 00:00", "2026-12-01 07:00"),
        (NIGHT, "2026-12-01 06:59:59", "2026-12-01 07:00"),
        (NIGHT, "2026-12-01 07:00", None),
        (NOON, "2026-11-30 11:59", None),
        (NOON, "2026-11-30 12:00", "2026-11-30 13:30"),
        (NOON, "2026-11-30 13:30", None),
    ],
)
def test_quiet_hours_end_by_the_clock_on_the_persons_wall(
    hours: QuietHours, now: str, ends: str | None
) -> None:
    found = quiet.ends(hours=hours, now=at(now, hours.zone))

    assert found == (at(ends, hours.zone) if ends else None)


@pytest.mark.parametrize(
    ("now", "length"),
    [
        ("2026-03-28 22:00", 8),  # the clocks go forward in this night
        ("2026-10-24 22:00", 10),  # and back in this one
    ],
)
def test_in_the_night_in_which_the_clocks_change_they_are_shorter_or_longer(now: str, length: int) -> None:
    start = at(now, NIGHT.zone)

    found = quiet.ends(hours=NIGHT, now=start)

    assert found is not None
    assert found - start.astimezone(dt.UTC) == length * HOUR


@pytest.mark.parametrize(
    ("now", "ends"),
    [
        ("2026-03-29 00:45", "2026-03-29 01:30"),  # at a quarter to two; the clocks skip half past two
        (
            "2026-10-25 00:15",
            "2026-10-25 01:30",
        ),  # at a quarter past two; the clocks show half past two twice
    ],
)
def test_an_end_that_the_clocks_skip_or_show_twice_is_the_later_one(now: str, ends: str) -> None:
    hours = QuietHours(starts=dt.time(22), ends=dt.time(2, 30), zone="Europe/Berlin")

    assert quiet.ends(hours=hours, now=at(now, "UTC")) == at(ends, "UTC")


@given(
    minutes=st.integers(0, 2 * 366 * 24 * 60),
    starts=st.times(),
    ends=st.times(),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]),
)
def test_the_end_is_never_past_and_never_over_a_day_away(
    minutes: int, starts: dt.time, ends: dt.time, zone: str
) -> None:
    now = at("2026-01-01", "UTC") + minutes * dt.timedelta(minutes=1)

    found = quiet.ends(hours=QuietHours(starts=starts, ends=ends, zone=zone), now=now)

    assert found is None or now < found <= now + 25 * HOUR


@pytest.mark.parametrize(
    ("left", "waits"),
    [
        (dt.timedelta(minutes=10), None),
        (9 * HOUR + quiet.MARGIN, None),
        (9 * HOUR + 2 * quiet.MARGIN, 9 * HOUR),
    ],
)
def test_what_would_run_out_before_it_can_be_decided_does_not_wait(
    left: dt.timedelta, waits: dt.timedelta | None
) -> None:
    now = at("2026-11-30 22:00", NIGHT.zone)

    until = quiet.waits_until(hours=NIGHT, now=now, useless_after=now + left)

    assert until == (now + waits if waits else None)


# --- end to end


@pytest.fixture(autouse=True)
def mailer(sink: Sink, settings: Any) -> None:
    settings.MAILERS = {"default": {"OPTIONS": {"host": "127.0.0.1", "port": sink.port, "timeout": 5}}}


def be_quiet(person: User) -> None:
    """For an hour to come."""
    now = timezone.now()
    hours = {"starts": (now - HOUR).time(), "ends": (now + HOUR).time(), "zone": "UTC"}
    QuietHours.objects.create(user=person, **hours)


@pytest.mark.django_db(transaction=True)
def test_a_notice_waits_for_the_end_of_the_quiet_hours_and_then_comes(
    agent: Principal, alice: User, receiver: Receiver, sink: Sink
) -> None:
    be_quiet(alice)
    Rule.objects.create(name="slow", rank=1, mode="confirm", decide_within=24 * HOUR)

    ledger.request(requester=agent, action=DELETE)
    work(receiver)

    notice = Notice.objects.get()
    assert sink.received.empty()
    assert notice.due_at > timezone.now() + HOUR / 2
    assert notice.attempts == 0
    QuietHours.objects.all().delete()
    Notice.objects.update(due_at=Now())
    work(receiver)
    sink.next()
    assert Notice.objects.get().sent_at is not None


def test_a_question_that_runs_out_in_the_quiet_hours_is_sent_at_once(
    agent: Principal, alice: User, receiver: Receiver, sink: Sink
) -> None:
    be_quiet(alice)

    ledger.request(requester=agent, action=DELETE)  # ten minutes to decide
    work(receiver)

    sink.next()


def test_what_was_settled_in_the_quiet_hours_is_not_asked_for_after_them(
    agent: Principal, alice: User, receiver: Receiver, sink: Sink
) -> None:
    be_quiet(alice)
    Rule.objects.create(name="slow", rank=1, mode="confirm", decide_within=24 * HOUR)
    asked = ledger.request(requester=agent, action=delete("/srv/x"))
    work(receiver)
    ledger.cancel(confirmation_id=asked.id, requester=agent)
    QuietHours.objects.all().delete()
    Notice.objects.update(due_at=Now())

    work(receiver)

    assert sink.received.empty()
    assert Notice.objects.get().withdrawn_at is not None

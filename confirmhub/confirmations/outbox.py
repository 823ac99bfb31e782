"""What is to be sent and done outside of a transaction: lease it, do it, mark it. A dead worker's comes back.

At least once: whoever does it must bear that it was done before.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models.functions import Now

from confirmhub.confirmations import rows
from confirmhub.confirmations.models import Chore, Notice

CHANNEL = "confirmhub_outbox"  # Postgres tells it when a notice or a chore was committed


@dataclass(frozen=True, slots=True)
class LeasedNotice:
    id: int
    kind: str
    confirmation_id: uuid.UUID
    recipient_id: int
    attempts: int


@dataclass(frozen=True, slots=True)
class LeasedChore:
    id: int
    task: str


# One statement finds and leases, and skips what another worker is leasing.
_LEASE_NOTICES = """
UPDATE confirmations_notice SET lease_until = clock_timestamp() + %(lease)s, attempts = attempts + 1
WHERE id IN (
    SELECT id FROM confirmations_notice
    WHERE sent_at IS NULL AND given_up_at IS NULL AND due_at <= clock_timestamp()
        AND (lease_until IS NULL OR lease_until < clock_timestamp())
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING id, kind, confirmation_id, recipient_id, attempts
"""
_LEASE_CHORES = """
UPDATE confirmations_chore SET lease_until = clock_timestamp() + %(lease)s, attempts = attempts + 1
WHERE id IN (
    SELECT id FROM confirmations_chore
    WHERE done_at IS NULL AND (lease_until IS NULL OR lease_until < clock_timestamp())
    ORDER BY created_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING id, task
"""


def lease_notices(*, limit: int, lease: dt.timedelta) -> list[LeasedNotice]:
    """Take notices to send, for as long as `lease`; then they come back unless marked."""
    found = rows.execute(_LEASE_NOTICES, {"limit": limit, "lease": lease})
    return [LeasedNotice(id_, kind, of, to, attempts) for id_, kind, of, to, attempts in found]


def find_leased(*, notice_ids: Collection[int]) -> list[LeasedNotice]:
    """Of these notices, those whose lease runs and that nobody has marked yet."""
    leased = Notice.objects.filter(
        id__in=notice_ids, sent_at=None, given_up_at=None, lease_until__gt=Now()
    ).order_by("id")
    return [
        LeasedNotice(row.id, row.kind, row.confirmation_id, row.recipient_id, row.attempts) for row in leased
    ]


def mark_sent(*, notice_id: int) -> None:
    """It was sent. Marking it again changes nothing."""
    Notice.objects.filter(id=notice_id, sent_at=None, given_up_at=None).update(sent_at=Now())


def mark_failed(*, notice_id: int, retry_in: dt.timedelta, give_up_after: int) -> None:
    """It was not sent: try again in `retry_in`, or give up after that many attempts, visibly in the queue."""
    open_ = Notice.objects.filter(id=notice_id, sent_at=None, given_up_at=None)
    if not open_.filter(attempts__gte=give_up_after).update(given_up_at=Now()):
        open_.update(due_at=Now() + retry_in, lease_until=None)


def enqueue_chore(*, task: str, slot: int) -> None:
    """Write one tick of a periodic task. The same tick of another beat changes nothing."""
    Chore.objects.bulk_create([Chore(task=task, slot=slot)], ignore_conflicts=True)


def lease_chores(*, limit: int, lease: dt.timedelta) -> list[LeasedChore]:
    """Take ticks to run, for as long as `lease`; then they come back unless marked."""
    found = rows.execute(_LEASE_CHORES, {"limit": limit, "lease": lease})
    return [LeasedChore(id_, task) for id_, task in found]


def mark_done(*, chore_id: int) -> None:
    """It was run. What is done and a day old leaves."""
    Chore.objects.filter(id=chore_id).update(done_at=Now())
    Chore.objects.filter(done_at__lt=Now() - dt.timedelta(days=1)).delete()

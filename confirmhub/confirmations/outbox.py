"""What is to be sent and done outside of a transaction: lease it, do it, mark it. A dead worker's comes back.

At least once: whoever does it must bear that it was done before.
"""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Greatest, Now

from confirmhub.confirmations import rows
from confirmhub.confirmations.models import Chore, Notice

CHANNEL = "confirmhub_outbox"  # Postgres tells it when a notice or a chore was committed


class Lane(enum.StrEnum):
    """What is leased apart, so that servers which hang hold up nothing but their own lane."""

    MAIL = "mail"  # and what was not spread yet
    WEB = "web"  # what people have chosen besides mail
    HOOK = "hook"  # services


@dataclass(frozen=True, slots=True)
class LeasedNotice:
    id: int
    kind: str
    confirmation_id: uuid.UUID
    recipient_id: int | None
    """The person; None where it is for a service."""

    hook_id: int | None
    """The service's hook; None where it is for a person."""

    attempts: int
    destination: int = 0
    """Which of the person's destinations; 0: their account's mail, or not spread yet."""

    channel: str = ""
    """How that destination is reached; empty: not spread yet."""


@dataclass(frozen=True, slots=True)
class LeasedChore:
    id: int
    task: str
    slot: int


# One statement finds and leases, and skips what another worker is leasing. An array is made once; a list
# after IN may be made again for each row, which would lock others each time, and more than the limit.
_LEASE_NOTICES = """
UPDATE confirmations_notice SET lease_until = clock_timestamp() + %(lease)s, attempts = attempts + 1
WHERE id = ANY(ARRAY(
    SELECT id FROM confirmations_notice
    WHERE sent_at IS NULL AND given_up_at IS NULL AND withdrawn_at IS NULL AND due_at <= clock_timestamp()
        AND (lease_until IS NULL OR lease_until < clock_timestamp())
        AND %(lane)s = CASE WHEN hook_id IS NOT NULL THEN 'hook'
                            WHEN channel IN ('', 'email') THEN 'mail' ELSE 'web' END
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING id, kind, confirmation_id, recipient_id, hook_id, attempts, destination, channel
"""
_LEASE_CHORES = """
UPDATE confirmations_chore SET lease_until = clock_timestamp() + %(lease)s, attempts = attempts + 1
WHERE id = ANY(ARRAY(
    SELECT id FROM confirmations_chore
    WHERE done_at IS NULL AND (lease_until IS NULL OR lease_until < clock_timestamp())
    ORDER BY created_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING id, task, slot
"""


def lease_notices(*, limit: int, lease: dt.timedelta, lane: Lane) -> list[LeasedNotice]:
    """Take notices of one lane to send, for as long as `lease`; then they come back unless marked."""
    found = rows.execute(_LEASE_NOTICES, {"limit": limit, "lease": lease, "lane": lane})
    return [LeasedNotice(*line) for line in found]


def find_leased(*, notice_ids: Collection[int]) -> list[LeasedNotice]:
    """Of these notices, those whose lease runs and that nobody has marked yet."""
    columns = (
        "id",
        "kind",
        "confirmation_id",
        "recipient_id",
        "hook_id",
        "attempts",
        "destination",
        "channel",
    )
    leased = _open().filter(id__in=notice_ids, lease_until__gt=Now()).order_by("id")
    return [LeasedNotice(*line) for line in leased.values_list(*columns)]


@transaction.atomic
def spread(*, notice_id: int, over: Sequence[tuple[int, str]]) -> None:
    """Make of a person's notice one for each of these destinations, each named with its channel.

    Each is then leased, tried again and given up by itself. Nothing is leased after this. Spreading what
    was spread before changes nothing.
    """
    row = _open().filter(id=notice_id, channel="", recipient__isnull=False).select_for_update().first()
    if row is None:
        return
    (destination, channel), *others = over
    Notice.objects.filter(id=row.id).update(
        destination=destination, channel=channel, lease_until=None, attempts=0
    )
    copies = [
        Notice(
            confirmation_id=row.confirmation_id,
            kind=row.kind,
            recipient_id=row.recipient_id,
            destination=other,
            channel=its_channel,
            created_at=row.created_at,
            due_at=row.due_at,
        )
        for other, its_channel in others
    ]
    Notice.objects.bulk_create(copies, ignore_conflicts=True)


def mark_sent(*, notice_id: int) -> None:
    """It was sent. Marking it again changes nothing."""
    _open().filter(id=notice_id).update(sent_at=Now())


@transaction.atomic
def mark_failed(
    *,
    notice_id: int,
    retry_in: dt.timedelta,
    give_up_after: int,
    why: str = "",
    or_else: tuple[int, str] | None = None,
) -> None:
    """It was not sent: try again in `retry_in`, or give up after that many attempts.

    What is given up stands in the queue, and in the confirmation's log with `why`, in words of ours. Where no
    other way to that person is left then, `or_else` is taken: number and channel of one.
    """
    row = _last_of(notice_id)
    if row is None:
        return
    one = Notice.objects.filter(id=row.id)
    if row.attempts < give_up_after:
        one.update(due_at=Now() + retry_in, lease_until=None)
        return
    one.update(given_up_at=Now())
    to = f"user {row.recipient_id}" if row.recipient_id else f"hook {row.hook_id}"
    rows.log(
        row.confirmation_id, "unsent", actor="outbox", notice=row.kind, to=to, channel=row.channel, why=why
    )
    if or_else:
        _fall_back(row, over=or_else)


def _last_of(notice_id: int) -> Notice | None:
    """The notice, locked, unless it is over. Those of one thing to one person end one after the other.

    Two that ended at once would each take the other for a way that is left.
    """
    row = _open().filter(id=notice_id).first()
    if row is None:
        return None
    rows.take_turns(f"notice {row.confirmation_id} {row.kind} {row.recipient_id}")
    return _open().filter(id=notice_id).select_for_update().first()


def _fall_back(row: Notice, *, over: tuple[int, str]) -> None:
    """Where no other way is left to that person, take this one, unless it was taken before for the same."""
    others = Notice.objects.filter(
        confirmation=row.confirmation_id, kind=row.kind, recipient=row.recipient_id
    ).exclude(id=row.id)
    if others.filter(given_up_at=None, withdrawn_at=None).exists():
        return  # it was sent another way, or will be
    destination, channel = over
    last = Notice(
        confirmation_id=row.confirmation_id,
        kind=row.kind,
        recipient_id=row.recipient_id,
        destination=destination,
        channel=channel,
    )
    Notice.objects.bulk_create([last], ignore_conflicts=True)


def postpone(*, notice_id: int, until: dt.datetime) -> None:
    """Nobody tried to send it: it is due again at that time, and the lease was no attempt."""
    _open().filter(id=notice_id).update(
        due_at=until, lease_until=None, attempts=Greatest(F("attempts") - 1, 0)
    )


@transaction.atomic
def withdraw(*, notice_id: int, or_else: tuple[int, str] | None = None) -> None:
    """Nobody needs it any more; or not in this way, and `or_else` is for it as in `mark_failed`."""
    row = _last_of(notice_id)
    if row is None:
        return
    Notice.objects.filter(id=row.id).update(withdrawn_at=Now())
    if or_else:
        _fall_back(row, over=or_else)


def _open() -> QuerySet[Notice]:
    return Notice.objects.filter(sent_at=None, given_up_at=None, withdrawn_at=None)


def enqueue_chore(*, task: str, slot: int) -> None:
    """Write one tick of a periodic task. The same tick of another beat changes nothing."""
    Chore.objects.bulk_create([Chore(task=task, slot=slot)], ignore_conflicts=True)


def lease_chores(*, limit: int, lease: dt.timedelta) -> list[LeasedChore]:
    """Take ticks to run, for as long as `lease`; then they come back unless marked."""
    found = rows.execute(_LEASE_CHORES, {"limit": limit, "lease": lease})
    return [LeasedChore(*line) for line in found]


def mark_done(*, chore_id: int) -> None:
    """It was run. What is done and a day old leaves."""
    Chore.objects.filter(id=chore_id).update(done_at=Now())
    Chore.objects.filter(done_at__lt=Now() - dt.timedelta(days=1)).delete()

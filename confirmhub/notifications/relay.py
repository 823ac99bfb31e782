"""From the outbox to the broker. Runs as a thread in each Celery worker; any number may run at once.

The outbox is what cannot be lost: a line is leased and sent to the broker, and if nobody has settled it
when its lease ends, by whatever accident, it is leased and sent again.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import batched
from typing import Any

import psycopg
from django.db import DatabaseError, connection
from psycopg import sql

from confirmhub.confirmations import outbox
from confirmhub.confirmations.dsn import conninfo
from confirmhub.confirmations.outbox import Lane, LeasedNotice
from confirmhub.notifications import people
from confirmhub.notifications.tasks import CHORES, DELIVER, TRY

logger = logging.getLogger(__name__)

LEASE = dt.timedelta(seconds=60)
"""Longer than any delivery takes, and how late a notice is after its worker was killed."""

AT_ONCE = {Lane.MAIL: 40, Lane.WEB: 6, Lane.HOOK: 6}
"""Notices of each lane that are on their way to a task. More would wait in the broker while their leases run
out; and servers that hang hold up no more threads of the worker than their lane has room."""

TOGETHER = {Lane.MAIL: 8, Lane.WEB: 1, Lane.HOOK: 1}
"""Notices that one task sends: mails share a connection."""

POLL = 1.0  # seconds; a notification that got lost costs no more
POLL_WHEN_FULL = 0.1  # seconds
GATHER = 0.05  # seconds between two looks, so that what comes in a burst is taken together
HEED = 0.2  # seconds until `stop` is heard
PULSE = 3.0  # seconds
PAUSE = 1.0  # seconds, after the database or the broker failed


class Relay:
    """Leases what is due and sends it on, until told to stop."""

    def __init__(self, *, send: Callable[[str, dict[str, Any]], object], pulse: Callable[[], None]) -> None:
        """`send` gives the broker a task's name and its arguments; `pulse` is called every few seconds."""
        self._send = send
        self._pulse = pulse
        self._stopping = threading.Event()
        self._on_their_way: dict[Lane, list[int]] = {lane: [] for lane in Lane}
        self._next_pulse = 0.0

    def run(self) -> None:
        """Relay until `stop`. A database or a broker that fails is tried again."""
        while not self._stopping.is_set():
            try:
                with _listening() as wire:
                    self._relay(wire)
            except (psycopg.Error, DatabaseError) as exc:
                logger.warning("the relay lost the database and tries again: %s", exc)
            except Exception:
                # A relay that dies quietly stops every notice. What it leased comes back.
                logger.exception("the relay failed and tries again")
            connection.close()
            self._stopping.wait(PAUSE)

    def stop(self) -> None:
        """Make `run` return, within about a second."""
        self._stopping.set()

    def _relay(self, wire: psycopg.Connection) -> None:
        while not self._stopping.is_set():
            if time.monotonic() >= self._next_pulse:
                self._pulse()
                self._next_pulse = time.monotonic() + PULSE
            if self.forward():
                self._stopping.wait(GATHER)
            else:
                self._wait(wire)

    def _wait(self, wire: psycopg.Connection) -> None:
        """Until something is committed to the outbox, it is time to look anyway, or `stop`."""
        full = any(not self._room(lane) for lane in Lane)
        deadline = time.monotonic() + (POLL_WHEN_FULL if full else POLL)
        while not self._stopping.is_set() and (left := deadline - time.monotonic()) > 0:
            for _ in wire.notifies(timeout=min(left, HEED), stop_after=1):
                return

    def forward(self) -> int:
        """Lease what is due and send it on. Returns how many lines of the outbox that took."""
        self._forget_what_arrived()
        taken = self._forward_chores()
        # Mail first: what is spread there is due in the other lanes at once.
        for lane in (Lane.MAIL, Lane.WEB, Lane.HOOK):
            if not (room := self._room(lane)):
                continue
            leased = outbox.lease_notices(limit=room, lease=LEASE, lane=lane)
            taken += len(leased)
            numbers = [notice.id for notice in self._spread(leased)]
            self._on_their_way[lane] += numbers
            for some in batched(numbers, TOGETHER[lane]):
                self._send(DELIVER, {"notice_ids": list(some)})
        return taken

    def _room(self, lane: Lane) -> int:
        return AT_ONCE[lane] - len(self._on_their_way[lane])

    def _forget_what_arrived(self) -> None:
        under_way = [number for numbers in self._on_their_way.values() for number in numbers]
        if under_way:
            left = {notice.id for notice in outbox.find_leased(notice_ids=under_way)}
            for lane, numbers in self._on_their_way.items():
                self._on_their_way[lane] = [number for number in numbers if number in left]

    def _spread(self, leased: list[LeasedNotice]) -> list[LeasedNotice]:
        """Make of each notice one for each destination that its person has chosen; return the rest."""
        fresh = {notice.recipient_id for notice in leased if not notice.channel} - {None}
        chosen = people.destinations_of(user_ids=fresh) if fresh else {}
        rest = []
        for notice in leased:
            over = chosen.get(notice.recipient_id or 0, [])
            if over and not notice.channel:
                outbox.spread(notice_id=notice.id, over=over)
            else:
                rest.append(notice)
        return rest

    def _forward_chores(self) -> int:
        chores = outbox.lease_chores(limit=100, lease=LEASE)
        newest = {chore.task: chore for chore in sorted(chores, key=lambda chore: chore.id)}
        for chore in chores:
            if chore.task == TRY:
                self._send(TRY, {"chore_id": chore.id, "slot": chore.slot})
            elif chore is newest[chore.task] and chore.task in CHORES:
                self._send(chore.task, {"chore_id": chore.id})
            else:
                # Ticks that queued up while no worker ran are one piece of work, not many; and a task
                # of another version would come back for ever.
                outbox.mark_done(chore_id=chore.id)
        return len(chores)


@contextmanager
def _listening() -> Iterator[psycopg.Connection]:
    """A connection of its own that hears of commits to the outbox."""
    with psycopg.connect(conninfo(), autocommit=True) as wire:
        wire.execute(sql.SQL("LISTEN {}").format(sql.Identifier(outbox.CHANNEL)))
        yield wire

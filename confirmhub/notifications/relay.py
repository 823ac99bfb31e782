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

import psycopg
from django.db import DatabaseError, connection
from psycopg import sql

from confirmhub.confirmations import outbox
from confirmhub.confirmations.dsn import conninfo
from confirmhub.notifications.tasks import CHORES, DELIVER

logger = logging.getLogger(__name__)

LEASE = dt.timedelta(seconds=60)
"""Longer than any delivery takes, and how late a notice is after its worker was killed."""

AT_ONCE = 32
"""Notices that are on their way to a task. More would wait in the broker while their leases run out."""

POLL = 1.0  # seconds; a notification that got lost costs no more
POLL_WHEN_FULL = 0.05  # seconds
HEED = 0.2  # seconds until `stop` is heard
PULSE = 3.0  # seconds
PAUSE = 1.0  # seconds, after the database or the broker failed


class Relay:
    """Leases what is due and sends it on, until told to stop."""

    def __init__(self, *, send: Callable[[str, dict[str, int]], object], pulse: Callable[[], None]) -> None:
        """`send` gives the broker a task's name and its arguments; `pulse` is called every few seconds."""
        self._send = send
        self._pulse = pulse
        self._stopping = threading.Event()
        self._on_their_way: list[int] = []
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
            if not self.forward():
                self._wait(wire)

    def _wait(self, wire: psycopg.Connection) -> None:
        """Until something is committed to the outbox, it is time to look anyway, or `stop`."""
        full = len(self._on_their_way) >= AT_ONCE
        deadline = time.monotonic() + (POLL_WHEN_FULL if full else POLL)
        while not self._stopping.is_set() and (left := deadline - time.monotonic()) > 0:
            for _ in wire.notifies(timeout=min(left, HEED), stop_after=1):
                return

    def forward(self) -> int:
        """Lease what is due and send it on. Returns how many lines of the outbox that took."""
        if self._on_their_way:
            self._on_their_way = [notice.id for notice in outbox.find_leased(notice_ids=self._on_their_way)]
        notices = []
        if room := AT_ONCE - len(self._on_their_way):
            notices = outbox.lease_notices(limit=room, lease=LEASE)
        for notice in notices:
            self._on_their_way.append(notice.id)
            self._send(DELIVER, {"notice_id": notice.id})
        return len(notices) + self._forward_chores()

    def _forward_chores(self) -> int:
        chores = outbox.lease_chores(limit=100, lease=LEASE)
        newest = {chore.task: chore for chore in sorted(chores, key=lambda chore: chore.id)}
        for chore in chores:
            if chore is newest[chore.task] and chore.task in CHORES:
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

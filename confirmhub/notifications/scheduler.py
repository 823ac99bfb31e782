"""Beat's ticks go into the outbox, not to the broker: none is lost, and many beats tick as one."""

from __future__ import annotations

import datetime as dt
import logging
import time
from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule
from django.db import DatabaseError, close_old_connections

from confirmhub.confirmations import outbox

logger = logging.getLogger(__name__)


class OutboxScheduler(Scheduler):
    """Writes each due entry as a chore, one a task and slot of time.

    It keeps no file. At its start everything is due, and the slot sees to it that this adds nothing.
    """

    max_interval = 3  # seconds between two pulses
    producer = None  # type: ignore[assignment] # none is needed; making one would wait for the broker

    def pulse(self) -> None:
        """Called every few seconds, so that somebody can see that beat runs."""
        raise NotImplementedError

    def setup_schedule(self) -> None:
        self.merge_inplace(self.app.conf.beat_schedule)
        for entry in self.schedule.values():
            entry.last_run_at = dt.datetime.fromtimestamp(0, dt.UTC)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        try:
            close_old_connections()
            self.pulse()
        except DatabaseError as exc:
            logger.warning("beat lost the database and tries again: %s", exc)
        return super().tick(*args, **kwargs)

    def apply_entry(self, entry: ScheduleEntry, producer: object = None) -> None:  # noqa: ARG002 - Celery's
        """Write the tick down. One that the database refuses is lost; the next comes in its time."""
        if not isinstance(entry.schedule, schedule) or entry.task is None:
            raise TypeError("a chore needs a task and an interval")
        slot = int(time.time() // entry.schedule.seconds)
        try:
            outbox.enqueue_chore(task=entry.task, slot=slot)
        except DatabaseError as exc:
            logger.warning("a tick of %s was not written: %s", entry.task, exc)

"""Quiet hours: what comes in them waits for their end, unless it would then be too late."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

from confirmhub.notifications.models import QuietHours

MARGIN = dt.timedelta(minutes=15)
"""What is left to decide in after the quiet hours, at least."""


def ends(*, hours: QuietHours, now: dt.datetime) -> dt.datetime | None:
    """When the quiet hours end that `now` is in; None when it is in none.

    By the clock on the person's wall: in the night in which the clocks change they are shorter or longer.
    """
    zone = ZoneInfo(hours.zone)
    wall = now.astimezone(zone)
    time = wall.time()
    after_start, before_end = time >= hours.starts, time < hours.ends
    over_midnight = hours.ends < hours.starts
    if not (after_start or before_end if over_midnight else after_start and before_end):
        return None
    tomorrow = over_midnight and after_start
    day = wall.date() + dt.timedelta(days=1) if tomorrow else wall.date()
    # A time that the clocks skip or show twice has two readings; the later one is never before `now`.
    end = dt.datetime.combine(day, hours.ends, zone)
    return max(end.replace(fold=fold).astimezone(dt.UTC) for fold in (0, 1))


def waits_until(
    *, hours: QuietHours | None, now: dt.datetime, useless_after: dt.datetime | None
) -> dt.datetime | None:
    """Until when a notice has to wait, or None: it goes out now.

    `useless_after` is when its question runs out. What would run out in the quiet hours, or within the
    quarter of an hour after, is sent at once: who is asleep loses nothing by it, and who is awake can
    decide.
    """
    end = ends(hours=hours, now=now) if hours else None
    if end is None or (useless_after is not None and useless_after <= end + MARGIN):
        return None
    return end

"""How often one sender may do one thing. Counted in Postgres, in a small table of its own.

Not in Django's cache: the default cache is one per process, and the database cache counts by
read and write, so that parallel requests pass together. Here counting is one statement, exact
for any number of processes, and needs nothing else to run.
"""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection
from django.db.models.functions import Now

from confirmhub.confirmations.principals import Principal
from confirmhub.oauth.models import Tally

if TYPE_CHECKING:
    from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `count` of `what` by one sender in each window of `within`."""

    what: str
    count: int
    within: timedelta


ASKING = Limit(what="api-create", count=120, within=timedelta(minutes=1))  # however a service asks


def sender(request: HttpRequest) -> str:
    """The peer's address; behind a proxy, the one that the ASGI server trusts it to report."""
    return str(request.META.get("REMOTE_ADDR", ""))


@dataclass(frozen=True, slots=True)
class Spent:
    """Where one who was counted stands."""

    wait: int
    """Seconds until they may try again; 0 means that this was within the limit."""

    remaining: int
    resets_in: int
    """Seconds until the window ends."""


def count(limit: Limit, *, who: str) -> int:
    """Count one more, and say how many seconds to wait: 0 means that it was within the limit."""
    return spend(limit, who=who).wait


def spend(limit: Limit, *, who: str) -> Spent:
    """Count one more, and say where they stand."""
    key, ends = _window(limit, who)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO oauth_tally AS t (key, count, ends_at) VALUES (%s, 1, %s)"
            " ON CONFLICT (key) DO UPDATE SET count = t.count + 1 RETURNING t.count",
            [key, datetime.fromtimestamp(ends, UTC)],
        )
        (counted,) = cursor.fetchone()
    resets_in = _wait(ends)
    return Spent(resets_in if counted > limit.count else 0, max(0, limit.count - counted), resets_in)


def spend_asking(*, who: Principal) -> Spent:
    """Count one more question, and say where its requester stands: one allowance, however they ask."""
    return spend(ASKING, who=f"{who.client_id} {who.subject}")


def wait(limit: Limit, *, who: str) -> int:
    """How many seconds until `who` may try again, counting nothing; 0 means now."""
    key, ends = _window(limit, who)
    full = Tally.objects.filter(key=key, count__gte=limit.count).exists()
    return _wait(ends) if full else 0


def sweep() -> int:
    """Forget the windows that are over; return how many."""
    return Tally.objects.filter(ends_at__lt=Now()).delete()[0]


def _window(limit: Limit, who: str) -> tuple[str, float]:
    seconds = limit.within.total_seconds()
    number = int(time.time() // seconds)
    key = hashlib.sha256(f"{limit.what}\n{number}\n{who}".encode("utf-8", "replace")).hexdigest()
    return key, (number + 1) * seconds


def _wait(ends: float) -> int:
    return max(1, math.ceil(ends - time.time()))

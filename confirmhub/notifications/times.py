"""How programs are told a time: as by the API."""

from __future__ import annotations

import datetime as dt


def stamp(at: dt.datetime) -> str:
    """A time in UTC as RFC 3339 writes it, to the microsecond."""
    return at.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")

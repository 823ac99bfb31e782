"""The sign of life of the worker and of beat. By itself, so that neither loads what the web process needs."""

from __future__ import annotations

from django.db import connection


def beat(*, name: str) -> None:
    """Record that the process `name` (`worker`, `beat`) is alive. Call it every 5 s or so."""
    with connection.cursor() as cursor:
        # Postgres's clock, as everywhere: hosts need not agree on the time.
        cursor.execute(
            "INSERT INTO ops_heartbeat (name, at) VALUES (%s, clock_timestamp())"
            " ON CONFLICT (name) DO UPDATE SET at = excluded.at",
            [name],
        )

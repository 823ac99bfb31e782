"""Django's Postgres, whose connections wait for no answer longer than Postgres would work on one.

A peer that acknowledges all it gets and says nothing is past what TCP notices: a server that was stopped, a
proxy that lost its other side. Each thread that asked it would hang, and Django's threads are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus

from confirmhub import env

PATIENCE = env.STATEMENT + 2.0  # seconds; Postgres itself gives up before, and says so

_patience: ContextVar[float | None] = ContextVar("patience", default=PATIENCE)


@contextmanager
def patience(*, seconds: float | None) -> Iterator[None]:
    """Wait so long for each answer in this block, which lets statements run for longer; None is for ever."""
    token = _patience.set(seconds)
    try:
        yield
    finally:
        _patience.reset(token)


class Connection(psycopg.Connection[Any]):
    """A connection that is closed when no answer comes; what it was sent may have been done."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, _patience.get())
        except psycopg.OperationalError as exc:
            # An error that the server told of leaves no statement under way.
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError("the database has not answered in time") from exc


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own but for that."""

    # Where Django finds `connect`, and the errors: in place of the module.
    Database: Any = SimpleNamespace(**vars(psycopg) | {"connect": Connection.connect})

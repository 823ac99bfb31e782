"""How to reach the database without Django, from an event loop, which never waits for a silent one."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from django.db import connection
from psycopg.conninfo import make_conninfo

from confirmhub import env
from confirmhub.database import base

PATIENCE = base.PATIENCE  # seconds

type Connection = psycopg.AsyncConnection[tuple[Any, ...]]
type Cursor = psycopg.AsyncCursor[tuple[Any, ...]]


class Silent(psycopg.OperationalError):
    """The database has not answered in time; what it was sent may have been done."""


_KEPT = {"sslmode", "sslrootcert", *env.CONNECTION}


def conninfo() -> str:
    """The libpq connection string of Django's own database."""
    settings = connection.settings_dict
    known = {
        "dbname": settings["NAME"],
        "user": settings["USER"],
        "password": settings["PASSWORD"],
        "host": settings["HOST"],
        "port": settings["PORT"],
        **{key: value for key, value in settings["OPTIONS"].items() if key in _KEPT},
    }
    return make_conninfo("", **{key: value for key, value in known.items() if value})


def limits() -> str:
    """How long a statement may wait and run, as libpq's `options`: as on Django's own connections."""
    return str(connection.settings_dict["OPTIONS"]["options"])


def keyed() -> str:
    """The same for connections whose few statements find rows by their keys, over and over.

    A plan for any parameters does for them: to make one for those at hand takes longer than to run it. And
    none reads a whole table, however many keys the planner takes there to be in a parameter.
    """
    return f"{limits()} -c plan_cache_mode=force_generic_plan -c enable_hashjoin=off -c enable_mergejoin=off"


async def connect(*, name: str, options: str, prepare_threshold: int = 5) -> Connection:
    """A new connection that commits each statement; `name` is its name in pg_stat_activity.

    Raises:
        psycopg.OperationalError: The database is away, or silent.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            return await psycopg.AsyncConnection.connect(
                conninfo(),
                autocommit=True,
                prepare_threshold=prepare_threshold,
                options=options,
                application_name=name,
            )
    except TimeoutError as exc:
        raise Silent("no connection in time") from exc


@contextmanager
def in_time(connection: Connection) -> Iterator[None]:
    """Cut the connection off when the block, which runs statements on it, takes longer than `PATIENCE`.

    The socket is shut down, which ends the driver's wait as a reset by the other side would. To cancel the
    task instead would have the driver ask the silent database, for seconds, to cancel the statement.

    Raises:
        Silent: It took longer. The connection is closed.
    """
    silent = False

    def cut_off() -> None:
        nonlocal silent
        silent = True
        if not connection.closed:
            with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)

    timer = asyncio.get_running_loop().call_later(PATIENCE, cut_off)
    try:
        yield
    except psycopg.Error as exc:
        if silent:
            raise Silent("no answer in time") from exc
        raise
    finally:
        timer.cancel()
        if silent:
            connection.pgconn.finish()

"""Look-ups from the event loop, many in one statement, on a connection of their own.

Not in threads: a thread waits for the interpreter's lock at every step while the loop is busy, which cost
more time than all else that a redemption does.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any

import psycopg

from confirmhub.confirmations import dsn
from confirmhub.confirmations.errors import Unavailable

type Rows = list[tuple[Any, ...]]


class Reader:
    """Runs queries, one after the other; a connection that was lost is made anew.

    `name` is the connection's in pg_stat_activity.
    """

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._connection: dsn.Connection | None = None
        self._turn = asyncio.Lock()

    async def rows(self, sql: str, values: Sequence[Any]) -> Rows:
        """What the query finds, as the driver reads it.

        Raises:
            Unavailable: The database is away, or took too long.
        """
        try:
            async with asyncio.timeout(dsn.PATIENCE):
                await self._turn.acquire()
        except TimeoutError as exc:
            raise Unavailable from exc
        try:
            return await self._rows(sql, values)
        except psycopg.OperationalError as exc:
            raise Unavailable from exc
        finally:
            self._turn.release()

    async def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _rows(self, sql: str, values: Sequence[Any]) -> Rows:
        if (kept := self._connection) is not None:
            try:
                return await self._run(kept, sql, values)
            except dsn.Silent:
                raise  # whoever asks next tries another
            except psycopg.OperationalError:
                if not kept.closed:
                    raise  # it took too long, and would again
                self._connection = None  # it was lost since: try another
        self._connection = await dsn.connect(name=self._name, options=dsn.keyed(), prepare_threshold=0)
        return await self._run(self._connection, sql, values)

    @staticmethod
    async def _run(connection: dsn.Connection, sql: str, values: Any) -> Rows:
        with dsn.in_time(connection):
            cursor = await connection.execute(sql.encode("ascii"), values)
            return await cursor.fetchall()


class Together[Key: Hashable, Value]:
    """Finds together what was asked for while the last look-up ran. Nothing is remembered."""

    def __init__(self, find: Callable[[list[Key]], Awaitable[dict[Key, Value]]]) -> None:
        self._find = find
        self._asked: dict[Key, list[asyncio.Future[Value | None]]] = {}
        self._sought: dict[Key, list[asyncio.Future[Value | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, key: Key) -> Value | None:
        """What belongs to the key, as of now."""
        answer: asyncio.Future[Value | None] = asyncio.get_running_loop().create_future()
        self._asked.setdefault(key, []).append(answer)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_up())
        return await answer

    async def close(self) -> None:
        """Look nothing up any more. Who still waits is cancelled."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        for answer in itertools.chain(*self._asked.values(), *self._sought.values()):
            answer.cancel()

    async def _look_up(self) -> None:
        while self._asked:
            asked = self._sought = self._asked
            self._asked = {}
            found: dict[Key, Value] = {}
            failed: Exception | None = None
            try:
                found = await self._find(list(asked))
            except Exception as exc:  # noqa: BLE001 - each of those who wait raises it
                failed = exc
            for key, answers in asked.items():
                for answer in answers:
                    if answer.done():
                        continue  # who asked has left
                    if failed:
                        answer.set_exception(failed)
                    else:
                        answer.set_result(found.get(key))

"""Statements that take many: what arrives while one runs goes to Postgres together, in the next.

Nobody is told that it was done before it is committed. Who is told None was not served by the batch, or
nobody knows whether it was, and asks alone.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

import psycopg

from confirmhub.confirmations import dsn

BATCH = 16  # of one statement, at most; what comes of these is dealt with while the next ones run
RECONNECT = 1.0  # seconds before a dropped connection is made anew

logger = logging.getLogger(__name__)


class OfOneRow(Protocol):
    """What can be asked for: of one confirmation each."""

    @property
    def confirmation_id(self) -> uuid.UUID: ...


class _Waiting[Asked: OfOneRow, Answer](NamedTuple):
    asked: Asked
    answer: asyncio.Future[Answer | None]


class Batches[Asked: OfOneRow, Answer]:
    """One statement, on connections of its own, in one process and one event loop.

    `name` is its connections' in pg_stat_activity. `parameters` makes those of the statement; `read` the
    answer from one of its rows, each of which begins with the id of the confirmation.
    """

    def __init__(
        self,
        statement: str,
        *,
        parameters: Callable[[Sequence[Asked]], list[object]],
        read: Callable[[Asked, tuple[Any, ...]], Answer | None],
        connections: int,
        name: str,
    ) -> None:
        self._statement = statement.encode("ascii")
        self._parameters = parameters
        self._read = read
        self._connections = connections
        self._name = name
        self._turn = asyncio.Lock()
        self._queue: deque[_Waiting[Asked, Answer]] = deque()
        self._arrived = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve for as long as the block runs."""
        async with asyncio.TaskGroup() as tasks:
            workers = [tasks.create_task(self._work()) for _ in range(self._connections)]
            try:
                yield
            finally:
                for worker in workers:
                    worker.cancel()
                self._turn_away()

    async def ask(self, asked: Asked) -> Answer | None:
        """The answer, or None where the batch has none."""
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(asked, answer))
        self._arrived.set()
        return await answer

    async def _work(self) -> None:
        """Serve what queues, on one connection, and on a new one each time the last is lost."""
        while True:
            try:
                async with await dsn.connect(
                    name=self._name, options=dsn.keyed(), prepare_threshold=0
                ) as database:
                    cursor = database.cursor()  # kept, since each new one costs time
                    while True:
                        # Or two connections would share between them what one can take.
                        async with self._turn:
                            batch = await self._next()
                        await self._serve(cursor, batch)
            except psycopg.Error as exc:
                logger.warning("%s lost the database, trying again: %s", self._name, exc)
            self._turn_away()  # alone it fails at once if there is no database, and does not hang
            await asyncio.sleep(RECONNECT)

    def _turn_away(self) -> None:
        while self._queue:
            _tell(self._queue.popleft(), None)

    async def _next(self) -> list[_Waiting[Asked, Answer]]:
        """What has queued, in the order of the ids, so that two batches do not wait for each other's rows.

        One of each id: a statement updates a row once, so a second asker goes back to the queue.
        """
        batch: dict[int, _Waiting[Asked, Answer]] = {}  # by the id, as the number that it is
        again: list[_Waiting[Asked, Answer]] = []
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        known = 0
        while known < len(self._queue) < BATCH:
            known = len(self._queue)  # who is about to ask in this turn of the loop comes along
            await asyncio.sleep(0)
        for _ in range(min(len(self._queue), BATCH)):
            each = self._queue.popleft()
            if each.answer.cancelled():
                continue
            if each is not batch.setdefault(each.asked.confirmation_id.int, each):
                again.append(each)
        self._queue.extend(again)
        return [batch[key] for key in sorted(batch)]

    async def _serve(self, cursor: dsn.Cursor, batch: list[_Waiting[Asked, Answer]]) -> None:
        if not batch:
            return
        try:
            with dsn.in_time(cursor.connection):
                await cursor.execute(self._statement, self._parameters([each.asked for each in batch]))
                found = {row[0].int: row for row in await cursor.fetchall()}
        except BaseException as exc:
            for each in batch:
                _tell(each, None)
            if isinstance(exc, Exception) and not cursor.connection.closed:
                logger.warning("%s: %s together failed, each goes alone: %s", self._name, len(batch), exc)
                return
            raise
        for each in batch:
            row = found.get(each.asked.confirmation_id.int)
            _tell(each, self._read(each.asked, row) if row else None)


def _tell[Asked: OfOneRow, Answer](waiting: _Waiting[Asked, Answer], answer: Answer | None) -> None:
    if not waiting.answer.done():
        waiting.answer.set_result(answer)

"""Wait until a confirmation leaves pending, or until anything changes, with no thread and no connection each.

Two connections a process: one listens for what is asked and what is settled, the other reads the status
of many who wait in one statement: of each when its wait begins, and of all, part by part, now and then,
since a notification is lost when the listening connection is, and since expiry notifies nobody until the
sweeper has run.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import Any

import psycopg

from confirmhub.confirmations import dsn, outbox, rows
from confirmhub.confirmations.errors import ASK_AFTER, Busy
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status

APPLICATION = "confirmhub waiting"  # its connections' name in pg_stat_activity
POLL = 2.0  # seconds in which all who wait are looked at once
SLICES = 8  # in so many parts, so that a crowd does not stop the event loop
HEARD = 10.0  # seconds after which the database is asked whether it is still there, since silence is no sign
RECONNECT = 1.0  # seconds before a dropped connection is made anew

logger = logging.getLogger(__name__)

type Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_READ = f"SELECT id, {rows.STANDING} FROM confirmations_confirmation AS c WHERE id = ANY(%s)"  # noqa: S608 - a part that is ours


class Crowded(Exception):
    """One caller waits in as many requests at once as it may."""


class _Waiters:
    """Who waits for what, in one process and one event loop."""

    def __init__(self) -> None:
        self.waiting: dict[uuid.UUID, set[asyncio.Future[Status]]] = {}
        self.unread: set[uuid.UUID] = set()  # to be read at once
        self.news = asyncio.Event()
        self.changes = 1  # how often something was asked or settled, as far as it was heard here
        self.watching: set[asyncio.Future[None]] = set()
        self.ended = False  # the process is about to stop

    def change(self) -> None:
        self.changes += 1
        for future in self.watching:
            if not future.done():
                future.set_result(None)

    def look_at(self, ids: set[uuid.UUID]) -> None:
        self.unread |= ids & self.waiting.keys()
        if self.unread:
            self.news.set()

    def settle(self, confirmation_id: uuid.UUID, status: Status) -> None:
        for future in self.waiting.pop(confirmation_id, set()):
            if not future.done():
                future.set_result(status)

    @contextmanager
    def one(self, confirmation_id: uuid.UUID) -> Iterator[asyncio.Future[Status]]:
        """The status of one confirmation, once it is not pending, or this process stops."""
        future: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        if self.ended:
            future.set_result(Status.PENDING)
        self.waiting.setdefault(confirmation_id, set()).add(future)
        self.look_at({confirmation_id})
        try:
            yield future
        finally:
            others = self.waiting.get(confirmation_id, set())
            others.discard(future)
            if not others:
                self.waiting.pop(confirmation_id, None)

    async def listen(self, connection: dsn.Connection) -> None:
        with dsn.in_time(connection):
            await connection.execute(f"LISTEN {rows.CHANNEL}")
            await connection.execute(f"LISTEN {outbox.CHANNEL}")
        self.look_at(set(self.waiting))  # what was missed while there was no connection
        self.change()
        while True:
            async for notification in connection.notifies(timeout=HEARD):
                self.change()
                with suppress(ValueError):
                    self.look_at({uuid.UUID(notification.payload)})
            with dsn.in_time(connection):
                await connection.execute("SELECT 1")

    async def read(self, connection: dsn.Connection) -> None:
        clock = asyncio.get_running_loop().time
        look_at_some, part = clock(), 0
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), max(0.0, look_at_some - clock()))
            self.news.clear()
            if clock() >= look_at_some:
                self.unread |= {id_ for id_ in self.waiting if id_.int % SLICES == part}
                look_at_some, part = clock() + POLL / SLICES, (part + 1) % SLICES
            if not self.unread:
                continue
            # Taken off the list before: what is told while this reads is read again, or it would be missed.
            ids, self.unread = self.unread, set()
            try:
                with dsn.in_time(connection):
                    cursor = await connection.execute(_READ, [sorted(ids)])
                    found = {row[0]: Status(str(row[1])) for row in await cursor.fetchall()}
            except BaseException:
                self.unread |= ids  # what a lost connection did not answer is asked again
                raise
            for confirmation_id in ids:
                status = found.get(confirmation_id, Status.EXPIRED)  # gone: it was finished long ago
                if status != Status.PENDING:
                    self.settle(confirmation_id, status)


_current: _Waiters | None = None


@asynccontextmanager
async def listening() -> AsyncIterator[None]:
    """Serve `settled_for` in this event loop for as long as the block runs: the application's lifespan."""
    global _current  # noqa: PLW0603 - one a process, set and unset by its lifespan alone
    waiters = _Waiters()
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(_connected(waiters.listen)),
            tasks.create_task(_connected(waiters.read)),
        ]
        _current = waiters
        try:
            yield
        finally:
            _current = None
            for task in running:
                task.cancel()


async def settled_for(receive: Receive, confirmation_id: uuid.UUID, *, within: timedelta) -> Status | None:
    """The status once the confirmation has left pending, or `PENDING` when time is up, or the process stops.

    For a client whose request has been read: None once it has closed that. Nobody is served then.

    `receive` is the request's, as ASGI has it. It says nothing about whose the confirmation is: ask `queries`
    first.

    Raises:
        RuntimeError: `listening` does not run in this process.
    """
    gone = asyncio.ensure_future(_gone(receive))
    try:
        with _running().one(confirmation_id) as future:
            done, _ = await asyncio.wait(
                (future, gone), timeout=within.total_seconds(), return_when=asyncio.FIRST_COMPLETED
            )
    finally:
        gone.cancel()
    if gone in done:
        gone.result()  # what it raised, if it did
        return None
    return future.result() if done else Status.PENDING


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Places:
    """Where so many may wait at once, and of them so many of one caller: nobody can take all places."""

    def __init__(self) -> None:
        self.taken: Counter[Principal] = Counter()

    @contextmanager
    def one(self, of: Principal, *, most: int, each: int) -> Iterator[None]:
        """Hold a place for as long as the block runs.

        Raises:
            Busy: All are taken.
            Crowded: This caller has taken as many as it may.
        """
        if self.taken[of] >= each:
            raise Crowded
        if self.taken.total() >= most:
            raise Busy(retry_after=ASK_AFTER)
        self.taken[of] += 1
        try:
            yield
        finally:
            self.taken[of] -= 1
            if not self.taken[of]:
                del self.taken[of]


async def changed(*, since: int, within: timedelta) -> int:
    """Wait until something was asked or settled anywhere, and tell the number of the newest change.

    Call it first with 0, which returns at once, then with what it returned: nothing in between is missed.
    What has changed, and for whom, it does not say. When time is up it returns `since`.

    Raises:
        RuntimeError: `listening` does not run in this process.
    """
    waiters = _running()
    if waiters.changes == since and not waiters.ended:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters.watching.add(future)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(future, within.total_seconds())
        finally:
            waiters.watching.discard(future)
    return waiters.changes


def end_all() -> None:
    """End every wait of this process as if its time were up, and each that begins: it is about to stop."""
    if _current is None:
        return
    _current.ended = True
    for confirmation_id in list(_current.waiting):
        _current.settle(confirmation_id, Status.PENDING)
    for future in _current.watching:
        if not future.done():
            future.set_result(None)


def has_ended() -> bool:
    """Whether nobody waits here any more."""
    return _current is None or _current.ended


def _running() -> _Waiters:
    if _current is None:
        raise RuntimeError("waiting.listening() must run in the application's lifespan.")
    return _current


async def _connected(work: Callable[[dsn.Connection], Awaitable[None]]) -> None:
    """Work on a connection, and on a new one each time the last is lost."""
    while True:
        try:
            async with await dsn.connect(name=APPLICATION, options=dsn.limits()) as connection:
                await work(connection)
        except psycopg.OperationalError as exc:
            logger.warning("lost the database while waiting, trying again: %s", exc)
        await asyncio.sleep(RECONNECT)

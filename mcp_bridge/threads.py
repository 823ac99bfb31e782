"""The one crossing from the event loop to code that blocks: the ORM, files, a guarded tool's effect."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from django.db import close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper

THREADS = 8  # one database connection each


class _Crossing:
    """A fixed set of threads, since a thread that comes and goes takes its connection along unclosed."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="bridge")
        self.connections: set[BaseDatabaseWrapper] = set()

    def run[R](self, call: Callable[[], R]) -> R:
        # Django does this around its own requests, which the bridge's calls are not.
        close_old_connections()
        try:
            return call()
        finally:
            close_old_connections()
            self.connections.update(connections.all(initialized_only=True))

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        for connection in self.connections:
            connection.inc_thread_sharing()  # its own thread is gone
            connection.close()


_crossing: _Crossing | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Keep the threads for as long as the bridge serves, and leave no connection behind."""
    global _crossing  # noqa: PLW0603 - one per process, like the connections that it keeps
    mine = _crossing = _Crossing()
    try:
        yield
    finally:
        _crossing = None
        await asyncio.to_thread(mine.close)


async def in_thread[**P, R](call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a blocking call in one of the bridge's threads.

    A call that has begun runs to its end, whatever becomes of the task that waits for it: a thread
    cannot be cancelled. One that has not begun when its task is cancelled never begins.

    Raises:
        RuntimeError: The bridge is not running.
    """
    if _crossing is None:
        raise RuntimeError("The bridge is not running: its lifespan was not entered.")
    work = functools.partial(call, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_crossing.pool, _crossing.run, work)

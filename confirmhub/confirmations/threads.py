"""A fixed set of threads for calls that block, from an event loop; no connection is left behind."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper


class Threads:
    """Fixed, since a thread that comes and goes takes its connection along unclosed."""

    def __init__(self, *, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)
        self._connections: set[BaseDatabaseWrapper] = set()

    async def run[**P, R](self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a blocking call in one of the threads.

        A call that has begun runs to its end, whatever becomes of the task that waits for it: a thread
        cannot be cancelled. One that has not begun when its task is cancelled never begins.
        """
        # In the caller's context, which has the request's id and its trace.
        work = functools.partial(contextvars.copy_context().run, call, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._clean, work)

    async def close(self) -> None:
        """Wait for what has begun, and close the connections."""
        await asyncio.to_thread(self._close)

    def _clean[R](self, call: Callable[[], R]) -> R:
        # Django does this around its own requests, which these calls are not.
        close_old_connections()
        try:
            return call()
        finally:
            close_old_connections()
            self._connections.update(connections.all(initialized_only=True))

    def _close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        for connection in self._connections:
            connection.inc_thread_sharing()  # its own thread is gone
            connection.close()

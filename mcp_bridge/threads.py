"""The one crossing from the event loop to code that blocks: the ORM, files, a guarded tool's effect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from confirmhub.confirmations.threads import Threads

THREADS = 8  # one database connection each

_threads: Threads | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Keep the threads for as long as the bridge serves, and leave no connection behind."""
    global _threads  # noqa: PLW0603 - one per process, like the connections that it keeps
    mine = _threads = Threads(count=THREADS, name="bridge")
    try:
        yield
    finally:
        _threads = None
        await mine.close()


async def in_thread[**P, R](call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a blocking call in one of the bridge's threads, as `Threads.run` does.

    Raises:
        RuntimeError: The bridge is not running.
    """
    if _threads is None:
        raise RuntimeError("The bridge is not running: its lifespan was not entered.")
    return await _threads.run(call, *args, **kwargs)

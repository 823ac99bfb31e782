"""The one crossing from the event loop to code that blocks: the ORM, files, a guarded tool's effect.

What acts has threads of its own, and as many turns as threads: whoever has a turn finds a thread at once, so
that what was redeemed does not queue behind what others ask. What looks at a target before anybody is asked
has its own, too: an author's code may hang there, no thread can be ended, and all others go on without those.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, Self

from confirmhub.confirmations.threads import Threads

THREADS = 4  # one database connection each
LOOKING = 8  # the same, where what is looked at is in the database
ACTING = 16  # the same, where what acts uses it


class _Running(NamedTuple):
    asking: Threads
    looking: Threads
    acting: Threads
    turns: asyncio.Semaphore


class Turn(NamedTuple):
    """A turn to act, which ends with the block, or with a call of `end`."""

    threads: Threads
    """One of these is free for it."""

    end: Callable[[], None]

    waited: float
    """Seconds that it took until others had ended theirs; it may be minutes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


_running: _Running | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Keep the threads for as long as the bridge serves, and leave no connection behind."""
    global _running  # noqa: PLW0603 - one per process, like the connections that it keeps
    mine = _running = _Running(
        Threads(count=THREADS, name="bridge"),
        Threads(count=LOOKING, name="looking"),
        Threads(count=ACTING, name="acting"),
        asyncio.Semaphore(ACTING),
    )
    try:
        yield
    finally:
        _running = None
        await mine.asking.close()
        await mine.looking.close()
        await mine.acting.close()


async def in_thread[**P, R](call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a blocking call in one of the bridge's threads, as `Threads.run` does.

    Raises:
        RuntimeError: The bridge is not running.
    """
    return await _now().asking.run(call, *args, **kwargs)


async def look_in_thread[**P, R](call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """As `in_thread`, in one of those that are there to look at targets.

    Raises:
        RuntimeError: The bridge is not running.
    """
    return await _now().looking.run(call, *args, **kwargs)


async def turn() -> Turn:
    """Wait for a turn to act. It is the caller's to end.

    Raises:
        RuntimeError: The bridge is not running.
    """
    mine = _now()
    began = time.monotonic()
    await mine.turns.acquire()
    return Turn(mine.acting, mine.turns.release, time.monotonic() - began)


def _now() -> _Running:
    if _running is None:
        raise RuntimeError("The bridge is not running: its lifespan was not entered.")
    return _running

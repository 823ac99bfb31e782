"""A fixed set of threads for calls that block, from an event loop; no connection is left behind."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

PATIENCE = 0.001  # seconds that a call may queue before it wakes a thread of its own


class _Call(NamedTuple):
    call: Callable[[], Any]
    context: contextvars.Context
    answer: asyncio.Future[Any]


class _Came(NamedTuple):
    answer: asyncio.Future[Any]
    value: Any = None
    raised: BaseException | None = None


class Threads:
    """Fixed, since a thread that comes and goes takes its connection along unclosed.

    Made in the event loop that it serves. The standard library's executor does the same for any loop, at
    many times the cost: to wake a thread takes longer than most calls. So one that is awake runs all that
    queue, what comes of several is told in one turn of the loop, and only what has queued for `PATIENCE`
    wakes others.
    """

    def __init__(self, *, count: int, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: deque[_Call] = deque()
        self._wakes: SimpleQueue[bool] = SimpleQueue()  # each wakes one thread; False ends it
        self._awake = 0  # threads that look for calls, or run one
        self._counting = threading.Lock()
        self._check: asyncio.TimerHandle | None = None
        self._came: deque[_Came] = deque()
        self._is_told = False  # that something came; the loop will look
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def run[**P, R](self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a blocking call in one of the threads.

        A call that has begun runs to its end, whatever becomes of the task that waits for it: a thread
        cannot be cancelled. One that has not begun when its task is cancelled never begins.

        Raises:
            RuntimeError: The threads were closed.
        """
        if self._is_closed:
            raise RuntimeError("The threads were closed.")
        answer: asyncio.Future[R] = self._loop.create_future()
        # In the caller's context, which has the request's id and its trace.
        context = contextvars.copy_context()
        self._calls.append(_Call(functools.partial(call, *args, **kwargs), context, answer))
        if self._check is None:
            if not self._awake:
                self._wakes.put(True)
            self._check = self._loop.call_later(PATIENCE, self._wake_others)
        return await answer

    async def close(self) -> None:
        """Wait for what has begun, and close the connections. What has not begun never does."""
        self._is_closed = True
        if self._check is not None:
            self._check.cancel()
        # Without waiting: a thread may take the last of them first.
        with suppress(IndexError):
            while True:
                self._calls.popleft().answer.cancel()
        for _ in self._threads:
            self._wakes.put(False)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _wake_others(self) -> None:
        """Wake a thread for each call that those awake have not got to, as far as there are any."""
        self._check = None
        asleep = len(self._threads) - self._awake - self._wakes.qsize()
        for _ in range(min(len(self._calls), asleep)):
            self._wakes.put(True)

    def _serve(self) -> None:
        mine: list[BaseDatabaseWrapper] = []
        while self._wakes.get():
            while True:
                self._count(1)
                self._work(mine)
                self._count(-1)
                if not self._calls:  # or one came while whoever asked found this thread awake
                    break
        for connection in mine:
            connection.close()

    def _work(self, mine: list[BaseDatabaseWrapper]) -> None:
        """Run what queues, until nothing does."""
        while self._calls:
            with suppress(IndexError):  # another thread took the last
                call = self._calls.popleft()
                if not call.answer.cancelled():
                    self._tell(_run(call, mine))
                del call  # what it was about is not kept while this waits for the next

    def _count(self, change: int) -> None:
        with self._counting:
            self._awake += change

    def _tell(self, came: _Came) -> None:
        self._came.append(came)
        if not self._is_told:
            self._is_told = True
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self._is_told = False  # first: what comes from now on tells anew
        while self._came:
            answer, value, raised = self._came.popleft()
            if answer.done():
                continue  # who asked has left
            if raised is None:
                answer.set_result(value)
            else:
                answer.set_exception(raised)


def _run(call: _Call, mine: list[BaseDatabaseWrapper]) -> _Came:
    """Run it with sound connections. `mine` are those of this thread."""
    try:
        # Django does this around its own requests, which these calls are not.
        _close_old(mine)
        try:
            return _Came(call.answer, call.context.run(call.call))
        finally:
            if not mine:
                mine += connections.all(initialized_only=True)
            _close_old(mine)
    except Exception as exc:  # noqa: BLE001 - whoever waits raises it
        return _Came(call.answer, raised=exc)
    except BaseException as exc:  # noqa: BLE001 - likewise, but in a form that ends nothing else
        # Raised as it is it would end the event loop, or pass for a task that somebody cancelled.
        ended = RuntimeError(f"The call ended with {type(exc).__name__}.")
        ended.__cause__ = exc
        return _Came(call.answer, raised=ended)


def _close_old(connected: Sequence[BaseDatabaseWrapper]) -> None:
    for connection in connected:
        connection.close_if_unusable_or_obsolete()

"""A fixed number of threads: answers come to who asked, and what is cancelled in time never begins."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import Future

import psycopg
import pytest
from django.db import connection

from confirmhub.confirmations import threads as module
from confirmhub.confirmations.dsn import conninfo
from confirmhub.confirmations.threads import Threads

NAME = contextvars.ContextVar("NAME", default="")


def test_each_gets_its_own_answer_or_failure_in_its_own_context() -> None:
    def call(number: int) -> str:
        if number % 3 == 0:
            raise ValueError(number)
        return f"{NAME.get()} {number}"

    async def ask(threads: Threads, number: int) -> str:
        NAME.set(f"asker {number}")
        return await threads.run(call, number)

    async def main() -> list[str | BaseException]:
        threads = Threads(count=4, name="test")
        try:
            return await asyncio.gather(*(ask(threads, n) for n in range(100)), return_exceptions=True)
        finally:
            await threads.close()

    for number, found in enumerate(asyncio.run(main())):
        if number % 3 == 0:
            assert isinstance(found, ValueError)
            assert found.args == (number,)
        else:
            assert found == f"asker {number} {number}"


def test_what_has_begun_runs_to_its_end_and_what_has_not_never_begins() -> None:
    began, go, seen = threading.Event(), threading.Event(), list[str]()

    def slow() -> None:
        began.set()
        assert go.wait(timeout=20)
        seen.append("slow")

    async def main() -> None:
        threads = Threads(count=1, name="test")
        first, second, third = (
            asyncio.create_task(threads.run(call))
            for call in (slow, lambda: seen.append("second"), lambda: seen.append("third"))
        )
        await asyncio.to_thread(began.wait, 20)
        first.cancel()
        second.cancel()
        asyncio.get_running_loop().call_later(0.05, go.set)
        await threads.close()  # before the third has begun
        with pytest.raises(asyncio.CancelledError):
            await third

    asyncio.run(main())
    assert seen == ["slow"]


def test_when_they_close_what_has_begun_is_answered_and_all_that_queues_is_cancelled() -> None:
    began, go, seen = threading.Event(), threading.Event(), list[int]()

    def slow() -> str:
        began.set()
        assert go.wait(timeout=20)
        return "done"

    async def main() -> None:
        threads = Threads(count=1, name="test")
        first = asyncio.create_task(threads.run(slow))
        await asyncio.to_thread(began.wait, 20)
        queued = [asyncio.create_task(threads.run(seen.append, number)) for number in range(9)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(threads.close())
        done, _ = await asyncio.wait(queued, timeout=10)
        assert len(done) == 9  # while the first still runs
        assert all(task.cancelled() for task in done)
        go.set()
        await closing
        assert await first == "done"

    asyncio.run(main())
    assert seen == []


def test_calls_that_block_each_have_a_thread() -> None:
    together = threading.Barrier(4)

    async def main() -> None:
        threads = Threads(count=4, name="test")
        try:
            assert await threads.run(lambda: 7) == 7
            await asyncio.gather(*(threads.run(together.wait, 20) for _ in range(4)))
        finally:
            await threads.close()

    asyncio.run(main())


def test_a_call_does_not_wait_behind_one_that_blocks() -> None:
    go = threading.Event()

    async def main() -> None:
        threads = Threads(count=2, name="test")
        slow = asyncio.create_task(threads.run(go.wait, 20))
        for number in range(20):
            assert await threads.run(abs, number) == number
        assert not slow.done()
        go.set()
        assert await slow
        await threads.close()

    asyncio.run(main())


def test_a_call_that_comes_while_the_last_thread_falls_asleep_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[Future[str]] = []
    count = Threads._count

    def falling_asleep(threads: Threads, change: int) -> None:
        if change < 0 and not came:
            came.append(asyncio.run_coroutine_threadsafe(threads.run(lambda: "second"), threads._loop))
            longer = asyncio.sleep(5 * module.PATIENCE)
            asyncio.run_coroutine_threadsafe(longer, threads._loop).result(timeout=20)
        count(threads, change)

    monkeypatch.setattr(Threads, "_count", falling_asleep)

    async def main() -> None:
        threads = Threads(count=1, name="test")
        assert await threads.run(lambda: "first") == "first"
        async with asyncio.timeout(20):
            while not came:  # noqa: ASYNC110 - gives way, and waits for no time to pass
                await asyncio.sleep(0)
            assert await asyncio.wrap_future(came[0]) == "second"
        await threads.close()

    asyncio.run(main())


def test_no_call_queues_behind_the_end() -> None:
    async def main() -> None:
        threads = Threads(count=1, name="test")
        await threads.close()
        with pytest.raises(RuntimeError, match="closed"):
            await asyncio.wait_for(threads.run(lambda: 7), 10)

    asyncio.run(main())


@pytest.mark.django_db(transaction=True)
def test_a_lost_connection_is_made_anew_and_none_is_left_behind() -> None:
    def of_this_thread() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])

    def is_alive(pid: int, *, end: bool = False) -> bool:
        with psycopg.connect(conninfo(), autocommit=True) as other:
            if end:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            return other.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone() is not None

    async def main() -> list[int]:
        threads = Threads(count=1, name="test")
        first = await threads.run(of_this_thread)
        is_alive(first, end=True)
        found = [first, await threads.run(of_this_thread), await threads.run(of_this_thread)]
        await threads.close()
        return found

    first, second, third = asyncio.run(main())
    assert first != second == third
    assert any(not is_alive(third) for _ in range(500))  # its process ends a moment later

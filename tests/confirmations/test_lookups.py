"""Look-ups that are made together, and their end."""

from __future__ import annotations

import asyncio

from confirmhub.confirmations.lookups import Together


def test_who_is_looked_up_for_and_who_queues_are_cancelled_when_it_ends() -> None:
    async def main() -> None:
        sought, began, forever = list[list[int]](), asyncio.Event(), asyncio.Event()

        async def find(keys: list[int]) -> dict[int, int]:
            sought.append(keys)
            began.set()
            await forever.wait()
            return {}

        together = Together(find)
        first = [asyncio.create_task(together.find(1)) for _ in range(2)]
        await began.wait()
        queued = [asyncio.create_task(together.find(key)) for key in (1, 2)]
        await asyncio.sleep(0)

        await together.close()

        done, _ = await asyncio.wait([*first, *queued], timeout=10)
        assert len(done) == 4
        assert all(task.cancelled() for task in done)
        assert sought == [[1]]

    asyncio.run(main())


def test_to_end_what_never_began_is_nothing() -> None:
    async def find(keys: list[int]) -> dict[int, int]:
        raise AssertionError

    async def main() -> None:
        await Together(find).close()

    asyncio.run(main())

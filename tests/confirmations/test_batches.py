"""Statements that take many, and their end: whoever asks is told something, whenever that comes."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

import psycopg
import pytest

from confirmhub.confirmations import dsn
from confirmhub.confirmations.batches import Batches

pytestmark = pytest.mark.django_db(transaction=True)

ECHO = "SELECT id FROM json_to_recordset(%s) AS asked(id uuid)"
HELD = 4711  # the key of an advisory lock


@dataclass(frozen=True)
class Asked:
    confirmation_id: uuid.UUID


def batches(statement: str) -> Batches[Asked, uuid.UUID]:
    def parameters(asked: Sequence[Asked]) -> list[object]:
        return [json.dumps([{"id": str(each.confirmation_id)} for each in asked])]

    return Batches(
        statement, parameters=parameters, read=lambda _, row: row[0], connections=1, name="test batches"
    )


def run(scenario: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


def test_who_asks_is_told_whenever_it_ends_while_a_batch_is_put_together() -> None:
    async def ends_after(turns: int) -> uuid.UUID | None:
        mine = batches(ECHO)
        async with mine.running():
            await mine.ask(Asked(uuid.uuid4()))  # it has its connection, and waits for more
            waits = asyncio.create_task(mine.ask(Asked(uuid.UUID(int=7))))
            for _ in range(turns):
                await asyncio.sleep(0)
        return await waits

    async def scenario() -> None:
        # In one of these turns of the event loop it has taken the first off the queue and looks for more.
        for turns in range(1, 12):
            assert await ends_after(turns) in (None, uuid.UUID(int=7)), turns

    run(scenario())


def test_who_is_served_and_who_queues_are_told_when_it_ends() -> None:
    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(dsn.conninfo(), autocommit=True) as holder:
            await holder.execute("SELECT pg_advisory_lock(%s)", [HELD])
            mine = batches(f"{ECHO}, pg_advisory_xact_lock({HELD})")
            async with mine.running():
                served = asyncio.create_task(mine.ask(Asked(uuid.uuid4())))
                waits = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
                while await (await holder.execute(waits, [HELD])).fetchone() is None:
                    assert not served.done()
                queued = [asyncio.create_task(mine.ask(Asked(uuid.uuid4()))) for _ in range(3)]
                await asyncio.sleep(0)
            assert await asyncio.gather(served, *queued) == [None] * 4

    run(scenario())

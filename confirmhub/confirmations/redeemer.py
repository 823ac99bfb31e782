"""The async side of `ledger.redeem`: redemptions that arrive together go to Postgres as one statement.

The statement is the ledger's own, so there is one to read and one to prove. Whoever is not spent by it,
and each of a batch that failed as a whole, goes to `ledger.redeem` alone, which says why; the redemption
key makes that safe even when nobody knows whether the batch was committed.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple

import anyio.to_thread
import psycopg
from django.db import connection

from confirmhub.confirmations import ledger, rows
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.dsn import conninfo, limits
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.receipts import Receipt

BATCH = 64  # redemptions in one statement, at most
CONNECTIONS = 2  # while one commits, the other takes what has queued
APPLICATION = "confirmhub redeemer"  # its connections' name in pg_stat_activity
RECONNECT = 1.0  # seconds before a dropped connection is made anew

logger = logging.getLogger(__name__)


class _Asked(NamedTuple):
    redemption: rows.Redemption
    answer: asyncio.Future[Receipt | None]  # None: not spent by the batch, ask the ledger why


_queue: asyncio.Queue[_Asked] | None = None
_loop: asyncio.AbstractEventLoop | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Serve `redeem` in this event loop for as long as the block runs: the application's lifespan."""
    global _queue, _loop  # noqa: PLW0603 - one a process, set and unset by its lifespan alone
    queue: asyncio.Queue[_Asked] = asyncio.Queue()
    async with asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(_work(queue)) for _ in range(CONNECTIONS)]
        _queue, _loop = queue, asyncio.get_running_loop()
        try:
            yield
        finally:
            _queue = _loop = None
            for worker in workers:
                worker.cancel()


async def redeem(
    *, confirmation_id: uuid.UUID, requester: Principal, action: Action, redemption_key: str
) -> Receipt:
    """Spend an approved confirmation, exactly as `ledger.redeem` does, and with its refusals.

    A caller that is cancelled loses nothing: the same key gets the receipt, marked replayed.

    Raises:
        ConfirmationError: As for `ledger.redeem`.
        RuntimeError: `running` does not run in this process.
    """
    if _queue is None:
        raise RuntimeError("redeemer.running() must run in the application's lifespan.")
    rows.check_key(redemption_key, of="redemption")
    asked = rows.Redemption(confirmation_id, requester, action, redemption_key)
    if (receipt := await _together(_queue, asked)) is not None:
        return receipt
    return await anyio.to_thread.run_sync(
        lambda: _alone(
            confirmation_id=confirmation_id,
            requester=requester,
            action=action,
            redemption_key=redemption_key,
        )
    )


def redeem_in_thread(
    *, confirmation_id: uuid.UUID, requester: Principal, action: Action, redemption_key: str
) -> Receipt:
    """The same for a thread, which waits for it and then goes on: nothing can come between.

    Where `running` does not run in this process, the ledger redeems it alone.

    Raises:
        ConfirmationError: As for `ledger.redeem`.
    """
    rows.check_key(redemption_key, of="redemption")
    if _queue is not None and _loop is not None:
        asked = rows.Redemption(confirmation_id, requester, action, redemption_key)
        receipt = asyncio.run_coroutine_threadsafe(_together(_queue, asked), _loop).result()
        if receipt is not None:
            return receipt
    return ledger.redeem(
        confirmation_id=confirmation_id, requester=requester, action=action, redemption_key=redemption_key
    )


async def _together(queue: asyncio.Queue[_Asked], asked: rows.Redemption) -> Receipt | None:
    """The receipt, or None where the batch did not spend it and the ledger has to say why."""
    answer: asyncio.Future[Receipt | None] = asyncio.get_running_loop().create_future()
    queue.put_nowait(_Asked(asked, answer))
    return await answer


def _alone(**asked: Any) -> Receipt:
    try:
        return ledger.redeem(**asked)
    finally:
        connection.close()  # this thread is nobody's own


async def _work(queue: asyncio.Queue[_Asked]) -> None:
    """Redeem what queues, on one connection, and on a new one each time the last is lost."""
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(
                conninfo(),
                autocommit=True,
                prepare_threshold=0,
                options=limits(),
                application_name=APPLICATION,
            ) as database:
                while True:
                    await _redeem_all(database, await _next_batch(queue))
        except psycopg.OperationalError as exc:
            logger.warning("lost the database while redeeming, trying again: %s", exc)
        await asyncio.sleep(RECONNECT)


async def _next_batch(queue: asyncio.Queue[_Asked]) -> list[_Asked]:
    """What has queued, in the order of the ids, so that two batches do not wait for each other's rows.

    One of each id: a statement updates a row once, so a second asker goes back to the queue.
    """
    batch: dict[uuid.UUID, _Asked] = {}
    again: list[_Asked] = []
    first = await queue.get()
    waiting = [first, *(queue.get_nowait() for _ in range(min(queue.qsize(), BATCH - 1)))]
    for asked in waiting:
        if asked.answer.cancelled():
            continue
        if asked.redemption.confirmation_id in batch:
            again.append(asked)
        else:
            batch[asked.redemption.confirmation_id] = asked
    for asked in again:
        queue.put_nowait(asked)
    return [batch[key] for key in sorted(batch)]


async def _redeem_all(database: psycopg.AsyncConnection[tuple[Any, ...]], batch: list[_Asked]) -> None:
    if not batch:
        return
    try:
        cursor = await database.execute(rows.REDEEM, rows.redeem_columns([each.redemption for each in batch]))
        spent = dict(await cursor.fetchall())
    except BaseException as exc:
        for asked in batch:
            _tell(asked, None)
        if isinstance(exc, psycopg.Error) and not database.broken:
            logger.warning("a batch of %s redemptions failed, each goes alone: %s", len(batch), exc)
            return
        raise
    for asked in batch:
        _tell(asked, _receipt(asked.redemption, spent.get(asked.redemption.confirmation_id)))


def _receipt(spent: rows.Redemption, redeemed_at: datetime | None) -> Receipt | None:
    if redeemed_at is None:
        return None
    digest = spent.action.digest.hex()
    return Receipt(spent.confirmation_id, digest, spent.redemption_key, redeemed_at, replayed=False)


def _tell(asked: _Asked, receipt: Receipt | None) -> None:
    if not asked.answer.done():
        asked.answer.set_result(receipt)

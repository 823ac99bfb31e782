"""Waiting for a decision: woken at once, awake again after a lost connection, and never left hanging."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, cast

import anyio.to_thread
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now

from confirmhub.confirmations import ledger, waiting
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status, Verdict
from tests.confirmations.clock import make_overdue
from tests.factories import TRANSFER, decide, make_approved, make_pending

pytestmark = pytest.mark.django_db(transaction=True)
LONG = dt.timedelta(seconds=30)


def run(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    async def listening() -> None:
        async with waiting.listening():
            await scenario()

    asyncio.run(asyncio.wait_for(listening(), 20))


async def settled(confirmation_id: uuid.UUID, *, within: dt.timedelta) -> Status | None:
    """What a client gets that stays."""
    return await waiting.settled_for(asyncio.Queue[dict[str, Any]]().get, confirmation_id, within=within)


async def in_thread(call: Callable[[], object]) -> None:
    def closing() -> None:
        try:
            call()
        finally:
            connection.close()

    await anyio.to_thread.run_sync(closing)


async def wait_until_asked(confirmation_id: uuid.UUID) -> None:
    """Until the first look at the row is over, so that a later wake can only come from the channel."""
    assert waiting._current is not None
    while (  # noqa: ASYNC110 - gives way, and waits for no time to pass
        confirmation_id in waiting._current.unread or confirmation_id not in waiting._current.waiting
    ):
        await asyncio.sleep(0)


@pytest.mark.parametrize("verdict", Verdict)
def test_a_waiter_is_woken_by_the_decision(
    agent: Principal, alice: User, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "POLL", 3600.0)  # the channel must do it
    pending = make_pending(agent)

    async def scenario() -> None:
        waiters = [asyncio.create_task(settled(pending.id, within=LONG)) for _ in range(50)]
        await wait_until_asked(pending.id)
        await in_thread(lambda: decide(pending, alice, verdict))
        assert set(await asyncio.gather(*waiters)) == {
            Status.APPROVED if verdict is Verdict.APPROVE else Status.DENIED
        }

    run(scenario)


def test_what_is_settled_already_is_answered_at_once(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    late = make_pending(agent, action=replace(TRANSFER, name="late"))
    make_overdue(late, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

    async def scenario() -> None:
        assert await settled(approved.id, within=LONG) is Status.APPROVED
        assert await settled(late.id, within=LONG) is Status.EXPIRED
        assert await settled(uuid.uuid4(), within=LONG) is Status.EXPIRED

    run(scenario)


def test_a_waiter_whose_time_is_up_gets_pending_and_leaves_nothing_behind(agent: Principal) -> None:
    pending = make_pending(agent)

    async def scenario() -> None:
        assert await settled(pending.id, within=dt.timedelta(seconds=0.05)) is Status.PENDING
        assert waiting._current is not None
        assert waiting._current.waiting == {}

    run(scenario)


def test_a_waiter_survives_a_lost_connection(
    agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "RECONNECT", 0.05)
    monkeypatch.setattr(waiting, "POLL", 0.1)
    pending = make_pending(agent)

    def cut_and_decide() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = %s",
                [waiting.APPLICATION],
            )
            assert len(cursor.fetchall()) == 2
        decide(pending, alice)

    async def scenario() -> None:
        waiter = asyncio.create_task(settled(pending.id, within=LONG))
        await wait_until_asked(pending.id)
        await in_thread(cut_and_decide)
        assert await waiter is Status.APPROVED

    run(scenario)


def test_a_cancelled_waiter_leaves_the_others_waiting(agent: Principal, alice: User) -> None:
    pending = make_pending(agent)

    async def scenario() -> None:
        gone = asyncio.create_task(settled(pending.id, within=LONG))
        stays = asyncio.create_task(settled(pending.id, within=LONG))
        await wait_until_asked(pending.id)
        gone.cancel()
        await in_thread(lambda: ledger.cancel(confirmation_id=pending.id, requester=agent))
        assert await stays is Status.CANCELLED
        assert gone.cancelled()

    run(scenario)


def test_waiting_outside_of_the_lifespan_is_an_error_and_not_a_hang() -> None:
    with pytest.raises(RuntimeError, match="lifespan"):
        asyncio.run(settled(uuid.uuid4(), within=LONG))


def test_what_is_asked_and_settled_is_told_and_so_is_that_some_may_have_been_missed(
    agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "RECONNECT", 0.05)
    pending: list[Confirmation] = []

    async def newest(since: int) -> int:
        """After a change, the number once it rests: a decision tells of a notice and of itself."""
        seen = await waiting.changed(since=since, within=LONG)
        assert seen > since
        while seen != since:
            since, seen = seen, await waiting.changed(since=seen, within=dt.timedelta(seconds=0.1))
        return seen

    async def scenario() -> None:
        listening = await newest(0)
        await in_thread(lambda: pending.append(make_pending(agent)))
        asked = await newest(listening)
        await in_thread(lambda: decide(pending[0], alice))
        settled = await newest(asked)
        await in_thread(cut)
        await newest(settled)
        assert waiting._current is not None
        assert waiting._current.watching == set()

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = %s",
                [waiting.APPLICATION],
            )

    run(scenario)


def test_who_has_left_is_served_no_decision_not_even_one_of_the_same_moment(
    agent: Principal, alice: User
) -> None:
    pending = make_pending(agent)
    approved = make_approved(agent, alice, action=replace(TRANSFER, name="another"))

    async def scenario() -> None:
        messages = asyncio.Queue[dict[str, Any]]()
        waits = asyncio.create_task(waiting.settled_for(messages.get, pending.id, within=LONG))
        await wait_until_asked(pending.id)
        messages.put_nowait({"type": "http.request"})  # some servers send the end of the body late
        messages.put_nowait({"type": "http.disconnect"})
        assert await waits is None

        both = asyncio.create_task(waiting.settled_for(messages.get, approved.id, within=LONG))
        await asyncio.sleep(0)
        assert waiting._current is not None
        waiting._current.settle(approved.id, Status.APPROVED)
        messages.put_nowait({"type": "http.disconnect"})
        assert await both is None

        stays = waiting.settled_for(messages.get, approved.id, within=LONG)
        assert await stays is Status.APPROVED

    run(scenario)


def test_a_decision_that_is_told_while_the_status_is_read_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "POLL", 3600.0)
    confirmation_id = uuid.uuid4()
    waiters = waiting._Waiters()
    answers = [Status.APPROVED, Status.PENDING]

    class Database:
        """Reads what was so before the decision, which is told before the answer is here."""

        async def execute(self, _: str, values: list[list[uuid.UUID]]) -> Database:
            assert values == [[confirmation_id]]
            return self

        async def fetchall(self) -> list[tuple[uuid.UUID, Status]]:
            waiters.look_at({confirmation_id})
            return [(confirmation_id, answers.pop())]

    async def main() -> Status:
        reading = asyncio.create_task(waiters.read(cast(Any, Database())))
        with waiters.one(confirmation_id) as future:
            try:
                return await asyncio.wait_for(future, 5)
            finally:
                reading.cancel()

    assert asyncio.run(main()) is Status.APPROVED

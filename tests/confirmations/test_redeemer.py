"""Redemptions that arrive together: one statement, each its own answer, nothing lost."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace

import anyio.to_thread
import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from confirmhub.confirmations import batches, dsn, errors, ledger, queries, redeemer, rows
from confirmhub.confirmations.models import Confirmation, Event, Outcome
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Result
from tests.factories import TRANSFER, kinds_of_events, make_approved, make_pending, redeem
from tests.invariants import proves

pytestmark = pytest.mark.django_db(transaction=True)


def run(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    async def serving() -> None:
        async with redeemer.running():
            await scenario()

    asyncio.run(asyncio.wait_for(serving(), 30))


def ask(confirmation: Confirmation, agent: Principal, key: str) -> Coroutine[None, None, Receipt]:
    return redeemer.redeem(
        confirmation_id=confirmation.id,
        requester=agent,
        action=replace(TRANSFER, name=confirmation.action),
        redemption_key=key,
    )


def report(receipt: Receipt, detail: str) -> Coroutine[None, None, bool]:
    return redeemer.report_together(receipt=receipt, result=Result.SUCCEEDED, detail=detail)


def approved_many(agent: Principal, alice: User, count: int) -> list[Confirmation]:
    return [
        make_approved(agent, alice, action=replace(TRANSFER, name=f"action.{number}"))
        for number in range(count)
    ]


@proves("redeem:once")
def test_each_of_many_callers_gets_its_own_answer_and_each_row_one_receipt(
    agent: Principal, alice: User
) -> None:
    approved = approved_many(agent, alice, 40)

    async def scenario() -> None:
        callers = [(row, f"key-{number}") for row in approved for number in range(5)]
        results = await asyncio.gather(
            *(ask(row, agent, key) for row, key in callers), return_exceptions=True
        )
        for row in approved:
            answers = [result for (of, _), result in zip(callers, results, strict=True) if of == row]
            assert Counter(type(answer) for answer in answers) == {Receipt: 1, errors.AlreadyRedeemed: 4}
        for (row, key), result in zip(callers, results, strict=True):
            if isinstance(result, Receipt):
                assert (result.confirmation_id, result.redemption_key, result.replayed) == (
                    row.id,
                    key,
                    False,
                )

    run(scenario)
    assert Event.objects.filter(kind="redeemed").count() == 40


def test_a_receipt_is_the_same_as_the_ledgers(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    receipts: list[Receipt] = []

    async def scenario() -> None:
        receipts.append(await ask(approved, agent, "k"))
        receipts.append(await ask(approved, agent, "k"))

    run(scenario)
    assert receipts[1] == replace(receipts[0], replayed=True) == redeem(approved, agent, key="k")
    approved.refresh_from_db()
    assert bytes(approved.event_head) == bytes(approved.events.get(kind="redeemed").hash)


def test_refusals_are_told_apart_as_the_ledger_does(agent: Principal, alice: User) -> None:
    pending = make_pending(agent)
    approved = make_approved(agent, alice, action=replace(TRANSFER, name="other"))

    async def scenario() -> None:
        with pytest.raises(errors.Pending):
            await ask(pending, agent, "k")
        with pytest.raises(errors.NotFound):
            await ask(approved, replace(agent, client_id="other"), "k")
        with pytest.raises(errors.InvalidAction):
            await ask(approved, agent, "two words")
        approved.action = "another"
        with pytest.raises(errors.ActionDiffers):
            await ask(approved, agent, "k")

    run(scenario)


def test_a_caller_that_is_cancelled_loses_nothing(agent: Principal, alice: User) -> None:
    first, second = approved_many(agent, alice, 2)

    async def scenario() -> None:
        gone = asyncio.create_task(ask(first, agent, "k1"))
        stays = asyncio.create_task(ask(second, agent, "k2"))
        await asyncio.sleep(0)
        gone.cancel()
        assert (await stays).confirmation_id == second.id
        assert (await ask(first, agent, "k1")).confirmation_id == first.id

    run(scenario)
    assert kinds_of_events(first).count("redeemed") == 1


def test_a_batch_that_fails_is_tried_one_by_one(
    agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved = approved_many(agent, alice, 3)
    original, calls = rows.redeem_parameters, []

    def broken_for_many(asked: list[rows.Redemption]) -> list[object]:
        calls.append(len(asked))
        return ["no JSON"] if len(asked) > 1 else original(asked)

    monkeypatch.setattr(rows, "redeem_parameters", broken_for_many)

    async def scenario() -> None:
        receipts = await asyncio.gather(*(ask(row, agent, "k") for row in approved))
        assert [receipt.confirmation_id for receipt in receipts] == [row.id for row in approved]

    run(scenario)
    assert max(calls) > 1


def test_a_lost_connection_is_no_lost_answer(
    agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "RECONNECT", 0.05)
    approved = approved_many(agent, alice, 6)

    def cut() -> None:
        with psycopg.connect(dsn.conninfo(), autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = %s",
                [redeemer.APPLICATION],
            )

    async def scenario() -> None:
        await ask(approved[0], agent, "k")
        await anyio.to_thread.run_sync(cut)
        receipts = await asyncio.gather(*(ask(row, agent, "k") for row in approved[1:]))
        assert [receipt.confirmation_id for receipt in receipts] == [row.id for row in approved[1:]]

    run(scenario)
    connection.close()


def test_reports_that_arrive_together_are_each_on_record_as_the_ledger_has_them(
    agent: Principal, alice: User
) -> None:
    approved = approved_many(agent, alice, 9)
    detail = 'said "ä\x00\ud800"'

    async def scenario() -> None:
        receipts = await asyncio.gather(*(ask(row, agent, "k") for row in approved))
        told = await asyncio.gather(*(report(receipt, detail) for receipt in receipts))
        assert told == [True] * 9
        assert not await report(receipts[0], "again")
        assert not await report(replace(receipts[1], redemption_key="guessed"), detail)

    run(scenario)
    alone = make_approved(agent, alice)
    ledger.report_outcome(receipt=redeem(alone, agent), result=Result.SUCCEEDED, detail=detail)
    last = [row.events.order_by("seq").last() for row in [*approved, alone]]
    assert {(event.kind, event.actor, event.detail, event.seq) for event in last if event} == {
        ("succeeded", "executor", json.dumps({"detail": detail}, separators=(",", ":")), 4)
    }
    assert [row.detail for row in Outcome.objects.all()] == [detail] * 10
    for row in approved:
        row.refresh_from_db()
        assert row.has_outcome
        assert queries.log_is_intact(confirmation_id=row.id)


def test_without_a_database_everybody_is_sent_to_the_ledger_and_nobody_hangs(
    agent: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dsn, "conninfo", lambda: "host=/nowhere")
    receipt = Receipt(uuid.uuid4(), "00" * 32, "k", timezone.now(), replayed=False)

    async def scenario() -> None:
        assert not await report(receipt, "Done.")
        spend = redeemer.redeem_together(
            confirmation_id=receipt.confirmation_id, requester=agent, action=TRANSFER, redemption_key="k"
        )
        assert await spend is None

    run(scenario)


def test_redeeming_outside_of_the_lifespan_is_an_error_and_not_a_hang(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    with pytest.raises(RuntimeError, match="lifespan"):
        asyncio.run(ask(approved, agent, "k"))

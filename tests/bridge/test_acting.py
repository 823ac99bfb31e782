"""One task for each act: whoever leaves or stops, what was redeemed is acted on and reported."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from mcp.server.mcpserver.exceptions import ToolError

from confirmhub.confirmations import ledger, redeemer
from confirmhub.confirmations.models import Confirmation, Outcome
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result
from mcp_bridge import acting, lookups, rounds, threads
from mcp_bridge.guard import Guarded
from tests.bridge.payments import PAY, Pay
from tests.factories import decide, kinds_of_events

pytestmark = pytest.mark.django_db(transaction=True)
ARGUMENTS = Pay.model_validate({"to": "DE89370400440532013000", "cents": 1250})


@pytest.fixture
def approved(agent: Principal, alice: User) -> Confirmation:
    asked = ledger.request(requester=agent, action=PAY.action(ARGUMENTS), observation=PAY.observe(ARGUMENTS))
    return decide(asked, alice)


async def serve(stack: AsyncExitStack) -> None:
    for running in (redeemer.running, threads.running, lookups.running, acting.running):
        await stack.enter_async_context(running())


async def nobody_waits() -> None:
    raise AssertionError("there is a turn for each")


async def act(guarded: Guarded[Pay], approved: Confirmation, agent: Principal) -> acting.Done:
    call = acting.Call(guarded, ARGUMENTS, guarded.action(ARGUMENTS), agent)
    standing = await lookups.standing(approved.id, agent)
    return await acting.redeem_and_act(call, standing, "k", check_caller=nobody_waits)


def test_a_server_that_stops_in_the_middle_ends_after_the_act_and_its_report(
    approved: Confirmation, agent: Principal
) -> None:
    began, go = threading.Event(), threading.Event()

    def slow(*_: Any) -> str:
        began.set()
        assert go.wait(timeout=20)
        return "Paid."

    async def main() -> None:
        async with AsyncExitStack() as stack:
            await serve(stack)
            call = asyncio.create_task(act(replace(PAY, execute=slow), approved, agent))
            await asyncio.to_thread(began.wait, 20)
            call.cancel()  # as the server does with requests when it stops
            with pytest.raises(asyncio.CancelledError):
                await call
            asyncio.get_running_loop().call_later(0.05, go.set)

    asyncio.run(main())
    assert kinds_of_events(approved) == ["requested", "approve", "redeemed", "succeeded"]
    assert Outcome.objects.get().detail == "Paid."


def test_a_failure_is_on_record_before_it_is_told(approved: Confirmation, agent: Principal) -> None:
    def refuse(*_: Any) -> str:
        raise ToolError("The bank is closed.")

    async def main() -> None:
        async with AsyncExitStack() as stack:
            await serve(stack)
            with pytest.raises(ToolError, match=r"The bank is closed\."):
                await act(replace(PAY, execute=refuse), approved, agent)
            with pytest.raises(ToolError, match=r"was not tried again\. It failed: The bank is closed\."):
                await act(PAY, approved, agent)

    asyncio.run(main())
    assert Outcome.objects.get().result == Result.FAILED


def test_rounds_differ_in_length_and_none_is_longer_than_is_said() -> None:
    lengths = [rounds._a_round() for _ in range(1_000)]

    assert max(lengths) <= rounds.HOLD
    assert min(lengths) >= rounds.HOLD * (1 - rounds.SPREAD)
    assert max(lengths) - min(lengths) > rounds.HOLD * rounds.SPREAD / 2


@pytest.mark.parametrize("returned", [None, 5, b"Paid."])
def test_a_tool_that_acts_and_returns_no_text_has_an_outcome(
    approved: Confirmation, agent: Principal, returned: object
) -> None:
    async def main() -> acting.Done:
        async with AsyncExitStack() as stack:
            await serve(stack)
            return await act(replace(PAY, execute=lambda *_: returned), approved, agent)

    done = asyncio.run(main())

    assert done.message == "It was done. The tool did not say what came of it."
    assert Outcome.objects.get(confirmation=approved).result == Result.SUCCEEDED

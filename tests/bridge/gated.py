"""Guarded tools that wait at a gate when they act, and then end as the test says. In the test's process."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pydantic import BaseModel, Field

from confirmhub.confirmations.actions import Observation
from confirmhub.confirmations.receipts import Receipt
from mcp_bridge.guard import Guarded, as_tool
from mcp_bridge.registry import BridgeTool

PATIENCE = 20  # seconds


class Gate:
    """What the tool waits for, how it ends, and what it has done."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()
        self.at_the_gate = threading.Semaphore(0)
        self.ends: Callable[[], None] = lambda: None
        self.sees: Callable[[], None] = lambda: None
        self.looks: Counter[int] = Counter()
        self.acts: Counter[int] = Counter()
        self.loops: Counter[int] = Counter()
        self.fingerprint = ""

    def arrive(self) -> None:
        self.at_the_gate.release()
        self.reached.set()

    def wait_for(self, number: int) -> None:
        """Wait until so many calls are at the gate."""
        for _ in range(number):
            assert self.at_the_gate.acquire(timeout=PATIENCE), "a call did not get as far as the gate"


gate = Gate()


class Pass(BaseModel):
    number: int = Field(description="Any number.")


def observe(arguments: Pass) -> Observation:
    gate.looks[arguments.number] += 1
    gate.sees()
    return Observation(facts=(("Number", str(arguments.number)),), fingerprint=gate.fingerprint)


def execute(_receipt: Receipt, arguments: Pass, _seen: Observation) -> str:
    gate.acts[arguments.number] += 1
    gate.arrive()
    assert gate.open.wait(PATIENCE), "nobody opened the gate"
    gate.ends()
    return f"Passed with {arguments.number}."


async def observe_on_the_loop(arguments: Pass) -> Observation:
    return observe(arguments)


async def execute_on_the_loop(_receipt: Receipt, arguments: Pass, _seen: Observation) -> str:
    gate.acts[arguments.number] += 1
    gate.loops[arguments.number] += asyncio.get_running_loop().is_running()
    gate.arrive()
    assert await asyncio.to_thread(gate.open.wait, PATIENCE), "nobody opened the gate"
    gate.ends()
    return f"Passed with {arguments.number}."


def execute_later(receipt: Receipt, arguments: Pass, seen: Observation) -> Awaitable[str]:
    return execute_on_the_loop(receipt, arguments, seen)


PASS = Guarded(
    name="pass",
    title="Pass",
    description="Pass the gate.",
    question="Pass the gate?",
    arguments=Pass,
    scopes=frozenset(),
    observe=observe,
    execute=execute,
)
ON_THE_LOOP = replace(PASS, name="pass_on_the_loop", observe=observe_on_the_loop, execute=execute_on_the_loop)
LATER = replace(PASS, name="pass_later", execute=execute_later)


def tools() -> list[BridgeTool]:
    return [as_tool(tool) for tool in (PASS, ON_THE_LOOP, LATER)]

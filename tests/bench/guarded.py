"""What `tests.bench.bridge` calls: guarded tools and bare ones, that do the same, which is nothing.

One of each is of functions that may block and get threads, the other of coroutine functions.
"""

from __future__ import annotations

from dataclasses import replace

from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from confirmhub.confirmations.actions import Observation
from confirmhub.confirmations.receipts import Receipt
from mcp_bridge.guard import Guarded, as_tool
from mcp_bridge.registry import BridgeTool

BASE = frozenset({"confirm:request", "confirm:redeem"})


class Count(BaseModel):
    n: int = Field(description="Any number.")


def observe(count: Count) -> Observation:
    return Observation(facts=(), fingerprint="")


def execute(receipt: Receipt, count: Count, seen: Observation) -> str:
    return f"Counted {count.n}."


async def observe_on_the_loop(count: Count) -> Observation:
    return observe(count)


async def execute_on_the_loop(receipt: Receipt, count: Count, seen: Observation) -> str:
    return execute(receipt, count, seen)


GUARDED = Guarded(
    name="count_guarded",
    title="Count",
    description="Counts.",
    question="Count?",
    arguments=Count,
    scopes=frozenset(),
    observe=observe,
    execute=execute,
)
ON_THE_LOOP = replace(
    GUARDED, name="count_guarded_on_the_loop", observe=observe_on_the_loop, execute=execute_on_the_loop
)


def count_bare(n: int) -> str:
    """Counts."""
    return f"Counted {n}."


async def count_bare_on_the_loop(n: int) -> str:
    """Counts."""
    return f"Counted {n}."


TOOLS = {tool.name: tool for tool in (GUARDED, ON_THE_LOOP)}


def tools() -> list[BridgeTool]:
    hints = ToolAnnotations(destructive_hint=True)
    bare = [
        Tool.from_function(count, title="Count", annotations=hints)
        for count in (count_bare, count_bare_on_the_loop)
    ]
    return [*map(as_tool, TOOLS.values()), *(BridgeTool(tool, BASE) for tool in bare)]

"""What `tests.bench.bridge` calls: a guarded tool and bare ones, that do the same, which is nothing.

A guarded tool is of functions that may block, so the one to hold it to is too: the SDK gives it a thread.
"""

from __future__ import annotations

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


def count_bare(n: int) -> str:
    """Counts."""
    return f"Counted {n}."


async def count_on_the_loop(n: int) -> str:
    """Counts."""
    return f"Counted {n}."


def tools() -> list[BridgeTool]:
    hints = ToolAnnotations(destructive_hint=True)
    bare = [
        Tool.from_function(count, title="Count", annotations=hints)
        for count in (count_bare, count_on_the_loop)
    ]
    return [as_tool(GUARDED), *(BridgeTool(tool, BASE) for tool in bare)]

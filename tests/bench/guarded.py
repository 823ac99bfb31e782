"""What `tests.bench.bridge` calls: a guarded tool and a bare one, that do the same, which is nothing."""

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


async def count_bare(n: int) -> str:
    """Counts."""
    return f"Counted {n}."


def tools() -> list[BridgeTool]:
    bare = Tool.from_function(count_bare, title="Count", annotations=ToolAnnotations(destructive_hint=True))
    return [as_tool(GUARDED), BridgeTool(bare, BASE)]

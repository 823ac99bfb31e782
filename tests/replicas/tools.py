"""A guarded tool whose every act leaves a line in a file, whoever acts. `GUARDED_TOOLS` names this module."""

from __future__ import annotations

import os

from pydantic import BaseModel, Field

from confirmhub.confirmations.actions import Observation
from confirmhub.confirmations.receipts import Receipt
from mcp_bridge.guard import Guarded, as_tool
from mcp_bridge.registry import BridgeTool

ACTS = "CONFIRMHUB_TEST_ACTS"  # the variable that names the file


class Act(BaseModel):
    number: int = Field(description="Any number.")


def observe(act: Act) -> Observation:
    return Observation(facts=(("Number", str(act.number)),), fingerprint="")


def execute(receipt: Receipt, act: Act, seen: Observation) -> str:
    line = f"{receipt.confirmation_id}\n".encode()
    file = os.open(os.environ[ACTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line)  # one write of a few bytes: processes do not mix theirs
    finally:
        os.close(file)
    return f"Did {act.number}."


def tools() -> list[BridgeTool]:
    guarded = Guarded(
        name="act",
        title="Act",
        description="Act.",
        question="Act?",
        arguments=Act,
        scopes=frozenset(),
        observe=observe,
        execute=execute,
    )
    return [as_tool(guarded)]

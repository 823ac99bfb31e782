"""A guarded tool of another package, as its author writes it. `GUARDED_TOOLS` names this module."""

from __future__ import annotations

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from confirmhub.confirmations.actions import Observation
from confirmhub.confirmations.receipts import Receipt
from mcp_bridge.guard import Guarded, as_tool
from mcp_bridge.registry import BridgeTool

LIMIT = 1_000_00  # cents


class Pay(BaseModel):
    to: str = Field(description="IBAN of the account to pay.", pattern=r"^[A-Z]{2}[0-9A-Z]{13,32}$")
    cents: int = Field(description="Amount in euro cents.", gt=0)


def observe(pay: Pay) -> Observation:
    if pay.cents > LIMIT:
        raise ToolError(f"At most {LIMIT} cents can be paid at once.")
    return Observation(facts=(("Amount", f"{pay.cents / 100:.2f} EUR"),), fingerprint=f"limit {LIMIT}")


def execute(receipt: Receipt, pay: Pay, seen: Observation) -> str:
    del seen  # nothing about the limit can change between the last look and this
    # The confirmation's id is the idempotency key of whatever moves the money.
    return f"Paid {pay.cents} cents to {pay.to}, reference {receipt.confirmation_id}."


PAY = Guarded(
    name="pay",
    title="Pay",
    description="Pay from the company's account.",
    question="Make this payment?",
    arguments=Pay,
    scopes=frozenset(),
    observe=observe,
    execute=execute,
)


def tools() -> list[BridgeTool]:
    return [as_tool(PAY)]

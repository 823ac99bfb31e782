"""An MCP server on the official SDK that asks before it pays.

    python -m tests.client.payments memory|hub PORT FILE

What it needs to spend a yes once is a ledger. In memory it is the peer's; the hub's takes its place by the
import alone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.request_state import RequestStateSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

if sys.argv[1] == "hub":
    from confirmhub_client import Rejected
    from confirmhub_client import SingleUse as SingleUseLedger
else:
    from mcp_confirm import Rejected, SingleUseLedger

FORM = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}

server = MCPServer(
    "payments",
    request_state_security=RequestStateSecurity(keys=[os.environ["SHARED_KEY"]], audience="payments"),
)
ledger = SingleUseLedger(ttl_seconds=300)


@server.tool(structured_output=False)
def pay(cents: int, ctx: Context) -> str | InputRequiredResult:
    """Pay."""
    answer = (ctx.input_responses or {}).get("yes")
    if answer is None or ctx.request_state is None:
        question = ElicitRequest(
            params=ElicitRequestFormParams(message=f"Pay {cents} cents?", requested_schema=FORM)
        )
        return InputRequiredResult(input_requests={"yes": question}, request_state=ledger.issue(now=0))
    try:
        ledger.spend(ctx.request_state, now=0)
    except Rejected as exc:
        raise ToolError(str(exc)) from exc
    with Path(sys.argv[3]).open("a") as paid:
        paid.write(f"{cents}\n")
    return "Paid."


if __name__ == "__main__":
    app = server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")

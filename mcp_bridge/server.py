"""The MCPServer object: its name, its tools, and how it seals the state that hosts carry."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from mcp.server.mcpserver import MCPServer, RequestStateSecurity

from mcp_bridge.registry import BridgeTool

INSTRUCTIONS = """\
confirmhub asks a person before something is done that cannot be undone. A tool that needs a person answers \
with a link to a page, or asks your host to open it. Show the person the link; never claim that they agreed. \
When they have decided, make the same call again, or call redeem_confirmation. A yes is for one exact \
action, once. After a no, do not ask again for the same. For a dangerous action of your own, call \
request_confirmation first, redeem_confirmation right before you act, and report_outcome after it."""


def build(*, tools: Iterable[BridgeTool]) -> MCPServer[dict[str, object]]:
    """A server with these tools. Every process makes an equal one: none of them keeps state."""
    return MCPServer(
        name="confirmhub",
        title="confirmhub",
        instructions=INSTRUCTIONS,
        website_url=settings.PUBLIC_URL,
        tools=[registered.tool for registered in tools],
        # The first key seals and all of them open, so that keys can be changed while hosts hold states,
        # and any process opens what another sealed.
        request_state_security=RequestStateSecurity(
            keys=settings.SEALING_KEYS, audience=settings.MCP_RESOURCE
        ),
        # Nothing here is published, and a subscription would hold a connection for ever.
        subscriptions=False,
    )

"""The MCPServer object: its name, its tools, and how it seals the state that hosts carry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult

from confirmhub import __version__, display
from mcp_bridge.registry import BridgeTool

INSTRUCTIONS = """\
confirmhub asks a person before something is done that cannot be undone. A tool that needs a person answers \
with a link to a page, or has your host ask them. Show the person the link; never claim that they agreed. \
When they have decided, make the same call again, or call redeem_confirmation. A yes is for one exact \
action, once. After a no, do not ask again for the same. For a dangerous action of your own, call \
request_confirmation first, redeem_confirmation right before you act, and report_outcome after it."""


NAME = 100  # characters of a name that no tool has, in an answer


class _ToolsAlone(MCPServer[dict[str, object]]):
    """The SDK's server, with nothing to it but tools."""

    def without(self, *methods: str) -> _ToolsAlone:
        """Take methods away: they are not found then, and what they would offer is not declared.

        Raises:
            KeyError: The SDK serves no such method, so that taking it away would do nothing.
        """
        for method in methods:
            # A server that has no prompts logs the names that are asked for.
            del self._lowlevel_server._request_handlers[method]  # noqa: SLF001 - there is no public way
        return self

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[dict[str, object], Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        if self._tool_manager.get_tool(name) is None:
            raise ToolError(
                f"There is no tool {display.short(name, NAME)}. See tools/list for those there are."
            )
        return await super().call_tool(name, arguments, context)


def build(*, tools: Iterable[BridgeTool]) -> MCPServer[dict[str, object]]:
    """A server with these tools. Every process makes an equal one: none of them keeps state."""
    return _ToolsAlone(
        name="confirmhub",
        title="confirmhub",
        version=__version__,
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
    ).without("prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read")

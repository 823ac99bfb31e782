"""What the bridge can register: a tool of the SDK, with the scopes that a token needs to call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ConfigDict


class _Exact(FuncMetadata):
    """The SDK's reader of arguments, without its guess that a string may be JSON in disguise.

    That guess takes the last of two equal keys, so what was sent and what is shown could differ.
    """

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        return data


@dataclass(frozen=True, slots=True)
class BridgeTool:
    """A tool, and the scopes that it takes."""

    tool: Tool
    scopes: frozenset[str]


def load(*, modules: Iterable[str]) -> list[BridgeTool]:
    """The tools of these modules: each has a `tools()` that returns them.

    Raises:
        ImproperlyConfigured: A module cannot be imported, has no `tools`, or brings a name twice.
    """
    found: list[BridgeTool] = []
    for module in modules:
        try:
            found += import_module(module).tools()
        except (ImportError, AttributeError) as exc:
            raise ImproperlyConfigured(f"GUARDED_TOOLS: {module} brings no tools: {exc}") from exc
    names = [entry.tool.name for entry in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ImproperlyConfigured(f"GUARDED_TOOLS: more than one tool is named {', '.join(twice)}.")
    return found


def hub_tool(
    call: Callable[..., Awaitable[object]], *, title: str, scopes: Iterable[str], annotations: ToolAnnotations
) -> BridgeTool:
    """Make a tool of an async function, its signature and its docstring."""
    tool = Tool.from_function(call, title=title, annotations=annotations)
    tool.description = " ".join(tool.description.split())
    found = tool.fn_metadata
    return BridgeTool(_closed(tool, found.arg_model, output=found.output_model), frozenset(scopes))


def model_tool(
    call: Callable[..., Awaitable[object]],
    *,
    name: str,
    title: str,
    description: str,
    arguments: type[BaseModel],
    output: type[BaseModel],
    scopes: Iterable[str],
    annotations: ToolAnnotations,
) -> BridgeTool:
    """Make a tool of an async function that takes `ctx` and the fields of a model."""
    tool = Tool(
        fn=call,
        name=name,
        title=title,
        description=description,
        parameters={},
        fn_metadata=FuncMetadata(arg_model=ArgModelBase),
        is_async=True,
        context_kwarg="ctx",
        annotations=annotations,
    )
    return BridgeTool(_closed(tool, arguments, output=output), frozenset(scopes))


def _closed(tool: Tool, arguments: type[BaseModel], *, output: Any) -> Tool:
    class Closed(arguments, ArgModelBase):  # type: ignore[valid-type,misc]  # a base that is a value
        # A misspelt argument that is quietly dropped would make another call than the one that was meant.
        model_config = ConfigDict(extra="forbid", title=tool.name)

    tool.fn_metadata = _Exact(arg_model=Closed, output_model=output)
    tool.parameters = Closed.model_json_schema(by_alias=True)
    return tool

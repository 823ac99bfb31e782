"""What the bridge can register: a tool of the SDK, with the scopes that a token needs to call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, ValidationError

from confirmhub import display

MOST = 10  # errors that are told of one call
SHOWN = 200  # characters of what is wrong with one argument


class _Exact(FuncMetadata):
    """The SDK's reader of arguments, without its guess that a string may be JSON in disguise.

    That guess takes the last of two equal keys, so what was sent and what is shown could differ.
    """

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        return data


class _Plain(Tool):
    """The SDK's tool, whose refusals are their own text: without the tool's name, and in sentences."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:  # noqa: FBT001, FBT002 - the SDK's
        try:
            return await super().run(arguments, context, convert_result)
        except UnexpectedToolError as exc:
            # With the same cause, which the SDK logs and does not tell.
            raise UnexpectedToolError(
                f"{self.name} failed; the service's log has the cause. It may have been done or not: look "
                "with list_confirmations before you call again."
            ) from exc.__cause__
        except ToolError as exc:
            # With the same cause: by it the SDK decides what may be logged of a refusal.
            cause = exc.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(_sentences(cause, known=self.parameters["properties"])) from cause
            raise ToolError(str(cause)) from cause


def _sentences(refused: ValidationError, *, known: Iterable[str]) -> str:
    """What is wrong with the arguments, one sentence for each. What was sent is not ours, so it is shown."""
    found = refused.errors(include_url=False, include_context=False, include_input=False)
    said = []
    for error in found[:MOST]:
        where = display.short(".".join(map(str, error["loc"])), SHOWN)
        what = display.short(error["msg"].removeprefix("Value error, ").rstrip("."), SHOWN)
        if error["type"] == "extra_forbidden":
            what = f"there is no such argument; there are {', '.join(known) or 'none'}"
        elif error["type"] == "missing":
            what = "this argument is missing"
        said.append(f"{where}: {what}.")
    more = f" And {len(found) - MOST} more." if len(found) > MOST else ""
    return f"The arguments are refused, and nothing was done. {' '.join(said)}{more}"


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
    tool = _Plain.from_function(call, title=title, annotations=annotations)
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
    tool = _Plain(
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

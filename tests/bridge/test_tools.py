"""What a host and a model see of the tools, and how other packages bring theirs."""

from __future__ import annotations

import asyncio
import sys
import types
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from mcp_types import Tool

from confirmhub.confirmations.errors import ConfirmationError
from mcp_bridge import errors, registry
from mcp_bridge.tools import hub
from tests.bridge.hosts import host, make_token

HUB = {
    "request_confirmation",
    "get_confirmation",
    "redeem_confirmation",
    "report_outcome",
    "cancel_confirmation",
    "list_confirmations",
}


def tools_of(url: str, token: str) -> dict[str, Tool]:
    async def use() -> list[Tool]:
        async with host(url, token) as client:
            return (await client.list_tools()).tools

    return {tool.name: tool for tool in asyncio.run(use())}


@pytest.fixture
def listed(url: str, token: str) -> dict[str, Tool]:
    return tools_of(url, token)


def test_the_tools_are_all_there(listed: dict[str, Tool]) -> None:
    assert set(listed) == HUB | {"list_files", "delete_file", "move_file"}


@pytest.mark.parametrize("scope", ["confirm:read", "confirm:read confirm:request confirm:redeem"])
def test_a_token_is_shown_all_that_it_may_ever_call_which_more_scope_lets_it(
    url: str, alice: User, listed: dict[str, Tool], scope: str
) -> None:
    # A host can ask for a scope only once a call of the tool has challenged it, so it must see the tool.
    assert tools_of(url, make_token(alice, resource=f"{url}/mcp", scope=scope)) == listed


def test_each_tool_says_what_it_takes_gives_and_does(listed: dict[str, Tool]) -> None:
    for tool in listed.values():
        assert tool.description
        assert tool.title
        assert tool.annotations
        assert tool.output_schema
        assert tool.input_schema["additionalProperties"] is False
        assert all(field.get("description") for field in tool.input_schema["properties"].values()), tool.name


def test_the_annotations_say_which_tools_are_dangerous(listed: dict[str, Tool]) -> None:
    def named(hint: str) -> set[str]:
        return {name for name, tool in listed.items() if getattr(tool.annotations, hint)}

    assert named("read_only_hint") == {"get_confirmation", "list_confirmations", "list_files"}
    assert named("destructive_hint") == {"delete_file", "move_file", "redeem_confirmation"}
    assert named("open_world_hint") == set()


def _subclasses(of: type[ConfirmationError]) -> set[type[ConfirmationError]]:
    return {found for sub in of.__subclasses__() for found in {sub} | _subclasses(sub)}


def test_every_refusal_of_the_ledger_has_words_for_a_model() -> None:
    assert set(errors.TEXTS) == _subclasses(ConfirmationError)


def test_a_module_without_tools_stops_the_start() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"mcp_bridge\.threads brings no tools"):
        registry.load(modules=["mcp_bridge.threads"])
    with pytest.raises(ImproperlyConfigured, match=r"no\.such\.module brings no tools"):
        registry.load(modules=["no.such.module"])


def test_two_tools_of_one_name_stop_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = types.ModuleType("more_tools")
    module.tools = hub.tools
    monkeypatch.setitem(sys.modules, "more_tools", module)

    with pytest.raises(ImproperlyConfigured, match="more than one tool is named cancel_confirmation"):
        registry.load(modules=["mcp_bridge.tools.hub", "more_tools"])

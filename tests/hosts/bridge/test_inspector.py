"""The official Inspector's command line, as a person runs it who wants to see what a server has."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from tests.bridge.hosts import decide_at, make_token
from tests.hosts import nodes
from tests.hosts.bridge.fixtures import lamps

WITHIN = 60  # seconds


class Inspector:
    """Runs it against one server, with a token in a header and the protocol of one era."""

    def __init__(self, url: str, token: str, era: str) -> None:
        options = ["--transport", "http", "--protocol-era", era, "--format", "json"]
        header = ["--header", f"Authorization: Bearer {token}"]
        self.command = [*nodes.tool("mcp-inspector"), "--cli", f"{url}/mcp", *options, *header]

    def __call__(self, method: str, *arguments: str) -> dict[str, Any]:
        ran = subprocess.run(
            [*self.command, "--method", method, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        found: dict[str, Any] = json.loads(ran.stdout)["result"]
        return found

    def call(self, tool: str, **arguments: str) -> dict[str, Any]:
        given = [part for name, value in arguments.items() for part in ("--tool-arg", f"{name}={value}")]
        return self("tools/call", "--tool-name", tool, *given)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_lists_and_calls_the_tools(url: str, alice: User, era: str) -> None:
    inspector = Inspector(url, make_token(alice, resource=f"{url}/mcp"), era)
    lamps.lit.clear()

    listed = inspector("tools/list")
    asked = inspector.call("light", lamp="red")
    decide_at(asked["structuredContent"]["page"])
    done = inspector.call("light", lamp="red")

    assert {tool["name"] for tool in listed["tools"]} >= {"light", "request_confirmation"}
    assert asked["structuredContent"]["status"] == "waiting_for_person"
    assert done["structuredContent"]["status"] == "done"
    assert lamps.lit == {"red": 1}
    assert Confirmation.objects.count() == 1

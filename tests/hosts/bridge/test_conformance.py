"""The official conformance suite for servers, against the application with the suite's own tools in it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from pytest_django import DjangoDbBlocker
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_bridge import server
from tests.bridge.hosts import make_token
from tests.bridge.serving import served
from tests.hosts import nodes
from tests.hosts.bridge.fixtures import everything

EXPECTED = Path(__file__).parent / "expected_failures.yml"
WITHIN = 120  # seconds


class TokenAdding:
    """Adds a token to each request without one: the suite has no way to send any."""

    token = ""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and all(name != b"authorization" for name, _ in scope["headers"]):
            scope["headers"].append((b"authorization", f"Bearer {self.token}".encode()))
        await self.app(scope, receive, send)


@pytest.fixture(scope="module")
def application(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The product's application, with a server that has more than the product's tools."""

    def with_everything(self: server._ToolsAlone, *_: str) -> server._ToolsAlone:
        everything.add_to(self)
        return self

    tools = override_settings(GUARDED_TOOLS=[everything.__name__])
    with pytest.MonkeyPatch.context() as patch, tools, django_db_blocker.unblock():
        patch.setattr(server._ToolsAlone, "without", with_everything)
        with served(within=TokenAdding) as url:
            yield url


# The suite still asks for what the newest revision deprecates.
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_all_that_a_revision_requires_is_passed(
    url: str, alice: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, revision: str
) -> None:
    monkeypatch.setattr(TokenAdding, "token", make_token(alice, resource=f"{url}/mcp"))
    command = [*nodes.tool("conformance"), "server", "--url", f"{url}/mcp", "--requirements", revision]

    ran = subprocess.run(
        [*command, "--expected-failures", EXPECTED, "--output-dir", tmp_path],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout.partition("=== SUMMARY ===")[2] + ran.stderr

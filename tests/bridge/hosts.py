"""MCP hosts for the tests, all over real HTTP: the SDK's client in each manner, and plain requests."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequestURLParams, ElicitResult

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Verdict
from confirmhub.oauth.models import AccessToken
from confirmhub.oauth.models import Client as OAuthClient
from tests.factories import decide

ALL = "confirm:read confirm:request confirm:redeem files:delete files:move"
MODERN = "2026-07-28"
_META = "io.modelcontextprotocol"


def make_token(
    user: User,
    *,
    resource: str,
    scope: str = ALL,
    client_id: str = "https://agent.example/client.json",
    within: timedelta = timedelta(minutes=5),
) -> str:
    """A token, stored as the authorization server stores it."""
    client, _ = OAuthClient.objects.get_or_create(
        client_id=client_id,
        defaults={
            "client_type": OAuthClient.CLIENT_PUBLIC,
            "authorization_grant_type": OAuthClient.GRANT_AUTHORIZATION_CODE,
            "redirect_uris": "http://127.0.0.1/callback",
        },
    )
    value = f"chat_{secrets.token_urlsafe(32)}"
    row = AccessToken(
        user=user, application=client, scope=scope, expires=timezone.now() + within, resource=[resource]
    )
    row.token, row._raw_token = "", value
    row.save()
    return value


@dataclass
class Person:
    """Who sits at a host that can open pages: what they answer, and what happens before they do."""

    action: str = "accept"
    before: Callable[[str], Awaitable[None]] | None = None
    asked: list[ElicitRequestURLParams] = field(default_factory=list)

    async def __call__(self, _context: Any, params: Any) -> ElicitResult:
        self.asked.append(params)
        if self.before:
            await self.before(params.url)
        return ElicitResult(action=self.action)


@contextlib.asynccontextmanager
async def host(
    url: str, token: str, *, person: Person | None = None, mode: str = "auto"
) -> AsyncIterator[Client]:
    """The SDK's client, signed in. With a person it declares URL elicitation."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=person, cache=None) as client:
            yield client


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


_ids = itertools.count(1)


def call_message(
    tool: str,
    arguments: dict[str, Any],
    *,
    elicitation: dict[str, Any] | None = None,
    message_id: int | None = None,
    **params: Any,
) -> dict[str, Any]:
    """A modern tools/call, as JSON-RPC."""
    capabilities = {} if elicitation is None else {"elicitation": elicitation}
    return {
        "jsonrpc": "2.0",
        "id": next(_ids) if message_id is None else message_id,
        "method": "tools/call",
        "params": {
            "name": tool,
            "arguments": arguments,
            "_meta": {
                f"{_META}/protocolVersion": MODERN,
                f"{_META}/clientInfo": {"name": "test", "version": "0"},
                f"{_META}/clientCapabilities": capabilities,
            },
            **params,
        },
    }


def post(
    url: str,
    message: object,
    *,
    token: str | None = None,
    version: str | None = MODERN,
    headers: dict[str, Any] | None = None,
    method: str = "POST",
) -> httpx2.Response:
    """One request, with all that a modern client sends, unless `headers` say otherwise."""
    sent = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if version:
        sent["mcp-protocol-version"] = version
    if version and isinstance(message, dict):
        sent["mcp-method"] = message["method"]
        if "name" in message.get("params", {}):
            sent["mcp-name"] = message["params"]["name"]
    if token:
        sent["authorization"] = f"Bearer {token}"
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return httpx2.request(method, f"{url}/mcp", content=body, headers=sent | (headers or {}), timeout=60)


def send_and_leave(
    url: str, message: dict[str, Any], *, token: str, when: threading.Event, version: str = MODERN
) -> None:
    """A request that is closed before its answer, once `when` is set."""
    body = json.dumps(message).encode()
    host = url.removeprefix("http://")
    lines = [
        "POST /mcp HTTP/1.1",
        f"host: {host}",
        f"authorization: Bearer {token}",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        f"mcp-protocol-version: {version}",
        f"mcp-method: {message['method']}",
        f"mcp-name: {message['params']['name']}",
        f"content-length: {len(body)}",
    ]
    with socket.create_connection(("127.0.0.1", int(host.partition(":")[2]))) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        assert when.wait(timeout=20)


def decide_at(page: str, verdict: Verdict = Verdict.APPROVE, *, reason: str = "") -> None:
    """Decide as the acting user does on the page at this address."""
    confirmation = Confirmation.objects.get(id=page.rpartition("/")[2])
    decide(confirmation, User.objects.get(pk=confirmation.requester_subject), verdict, reason=reason)


async def in_database[**P, R](call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a call that uses the ORM, from an async test."""

    def run() -> R:
        try:
            return call(*args, **kwargs)
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)

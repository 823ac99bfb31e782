"""MCP hosts on the official Python SDK, with our guards or without, as a program that is one after another.

It reads commands from stdin, one JSON object a line, and answers each with one line, too:

- `{"start": {...}}`: be a new host, and connect.
- `{"call": {"tool": NAME, "arguments": {...}, "times": N}}`: call a tool, N times together.
- `{"answer": QUERY}`: the authorization server has sent the person back, with this query string.
- `{"wait": "expiry"}`: let the time of the access token pass.

An answer has an `event`: `authorize` (a person is to open `url`), `connected`, `results`, `waited` or
`failed`; and `requests`, what was sent since the last answer and how each ended. `host.mjs` is the same
on the TypeScript SDKs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from confirmhub.oauth import client

PATIENCE = 60  # seconds for one request

requests: list[str] = []


def tell(event: str, **values: Any) -> None:
    line = {"event": event, "requests": requests, "notes": []} | values
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    requests.clear()


def tell_failure(failure: BaseException) -> None:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    tell("failed", name=type(failure).__name__, message=str(failure))


class Refused(Exception):
    """The person said no, or the server did."""


class Memory:
    """Keeps the registration and the tokens for as long as the host runs."""

    def __init__(self, *, keeps_refresh_token: bool) -> None:
        self._keeps_refresh_token = keeps_refresh_token
        self._client: OAuthClientInformationFull | None = None
        self._tokens: OAuthToken | None = None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        if not self._keeps_refresh_token:
            tokens.refresh_token = None  # in the one that the SDK goes on with, too
        self._tokens = tokens


class Host:
    """One host, from `start` to the next one. It is a task of its own, which opens and closes the client."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self._memory = Memory(keeps_refresh_token=start["keeps_refresh_token"])
        self._calls: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._answers: asyncio.Queue[str] = asyncio.Queue()
        self._task = asyncio.create_task(self._run())

    def call(self, call: dict[str, Any]) -> None:
        self._calls.put_nowait(call)

    def answer(self, query: str) -> None:
        self._answers.put_nowait(query)

    def let_token_expire(self) -> None:
        # The SDK knows from `expires_in` until when its token is good, and goes by that.
        self._auth.context.token_expiry_time = time.time() - 1

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _show(self, url: str) -> None:
        tell("authorize", url=url)

    async def _answer(self) -> AuthorizationCodeResult:
        query = parse_qs(await self._answers.get())
        if "error" in query:
            raise Refused(query["error"][0])
        return AuthorizationCodeResult(
            code=query["code"][0], state=query.get("state", [None])[0], iss=query.get("iss", [None])[0]
        )

    async def _run(self) -> None:
        was_connected = False
        while True:
            try:
                async with self._connected() as connected:
                    if not was_connected:
                        tell("connected")
                    was_connected = True
                    while True:
                        await self._obey(connected)
            except Exception as exc:  # noqa: BLE001 - whatever it is, the test is to read it
                tell_failure(exc)
            if not was_connected:
                return
            # What fails in its sign-in takes the SDK's whole connection with it; a host makes another one.

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        start = self._start
        metadata = OAuthClientMetadata(client_name=start["name"], redirect_uris=[start["redirect"]])
        if start["sdk"] == "ours":
            http_client = client.http_client(
                start["server"],
                client_metadata=metadata,
                storage=self._memory,
                redirect_handler=self._show,
                callback_handler=self._answer,
                timeout=PATIENCE,
            )
        else:
            self._auth = OAuthClientProvider(
                start["server"], metadata, self._memory, self._show, self._answer, start["document"]
            )
            http_client = httpx2.AsyncClient(auth=self._auth, timeout=PATIENCE, transport=Listening())
        async with http_client as http:
            transport = streamable_http_client(start["server"], http_client=http)
            async with Client(transport, cache=None) as connected:
                yield connected

    async def _obey(self, connected: Client) -> None:
        """Make the next call, or several of it together."""
        call = await self._calls.get()
        calls = (connected.call_tool(call["tool"], call["arguments"]) for _ in range(call["times"]))
        tell("results", results=[result.structured_content for result in await asyncio.gather(*calls)])


class Listening(httpx2.AsyncHTTPTransport):
    """Notes each request, and how it ended."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if request.method == "GET" and request.url.path == "/mcp":
            return response  # the optional stream opens in the background, whenever that is
        about, problem = self._matter(request.content), ""
        if response.status_code >= 400 and "_" in about:
            problem = json.loads(await response.aread())["error"]
        words = [request.method, request.url.path, about, str(response.status_code), problem]
        requests.append(" ".join(filter(None, words)))
        return response

    @staticmethod
    def _matter(content: bytes) -> str:
        if content.startswith(b"{"):
            return str(json.loads(content).get("method", ""))
        return parse_qs(content.decode()).get("grant_type", [""])[0]


async def main() -> None:
    host: Host | None = None
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        if "start" in command:
            if host:
                await host.close()
            host = Host(command["start"])
            continue
        assert host
        if "call" in command:
            host.call(command["call"])
        elif "answer" in command:
            host.answer(command["answer"])
        else:
            host.let_token_expire()
            tell("waited")


if __name__ == "__main__":
    logging.disable()  # the SDK's own account of failures, which the answers carry as well
    asyncio.run(main())

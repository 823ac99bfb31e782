"""MCP hosts of every kind, over real HTTP, behind one interface: what they call, and whom they ask."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import httpx2
import mcp_types
from mcp import Client
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.hosts import nodes

WITHIN = 40.0  # seconds for one answer; an open question is held for 20
LINE = 1 << 20  # bytes of a line at most

type Json = dict[str, Any]
type Ask = Callable[[Json], Awaitable[Json]]
"""Puts an elicitation's params to the person, and brings back the result that they mean."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's result."""

    text: str
    refused: bool
    data: Json | None


class Host(Protocol):
    """A host that has connected."""

    version: str
    """The protocol that it speaks with the server."""

    async def call(self, tool: str, **arguments: Any) -> Answer: ...


class PythonHost:
    """A host on the Python SDK."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.version = client.protocol_version

    async def call(self, tool: str, **arguments: Any) -> Answer:
        result = await asyncio.wait_for(self._client.call_tool(tool, arguments), WITHIN)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        return Answer(text, bool(result.is_error), result.structured_content)


class _Declaring(Client):
    """The SDK's client, which declares both kinds of elicitation wherever there is a callback."""

    elicitation: Mapping[str, Any] | None = None

    async def _build_session(self, exit_stack: contextlib.AsyncExitStack) -> ClientSession:
        session = await super()._build_session(exit_stack)
        build = session._build_capabilities
        declared = mcp_types.ElicitationCapability.model_validate(self.elicitation or {})

        def exactly(version: str) -> mcp_types.ClientCapabilities:
            found = build(version)
            return found.model_copy(update={"elicitation": declared}) if found.elicitation else found

        session._build_capabilities = exactly
        return session


@contextlib.asynccontextmanager
async def python_host(
    url: str, *, mode: str, elicitation: Json | None, token: str, ask: Ask
) -> AsyncIterator[Host]:
    """Start a host on the Python SDK. `mode` is "auto" or "legacy"."""

    async def answer(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult:
        asked = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        return mcp_types.ElicitResult.model_validate(await ask(asked))

    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=WITHIN) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        callback = None if elicitation is None else answer
        client = _Declaring(transport, mode=mode, elicitation_callback=callback, cache=None)
        client.elicitation = elicitation
        async with client:
            yield PythonHost(client)


class Node:
    """One process of `hosts.mjs`, in which any number of hosts on the TypeScript SDKs run."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._asks: dict[int, Ask] = {}
        self._answers: dict[int, asyncio.Queue[Json]] = {}

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, url: str) -> AsyncIterator[Self]:
        """Start it, and end it with all of its hosts."""
        process = await asyncio.create_subprocess_exec(
            *nodes.program(Path(__file__).parent / "hosts.mjs"),
            f"{url}/mcp",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE,
        )
        node = cls(process)
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(node._read(tasks))
                yield node
                assert process.stdin
                process.stdin.close()
                await reading
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def host(self, *, sdk: str, mode: str, elicitation: Json | None, token: str, ask: Ask) -> Host:
        """Start a host. `sdk` is "v1" or "v2"; for the latter `mode` is "auto" or "legacy"."""
        number = next(self._numbers)
        self._asks[number] = ask
        self._answers[number] = asyncio.Queue()
        said = await self.tell(number, sdk=sdk, mode=mode, elicitation=elicitation, token=token)
        assert said["event"] == "connected", said
        return _NodeHost(self, number, said["version"])

    async def tell(self, number: int, **command: Any) -> Json:
        """Give a host a command, and get what comes of it."""
        self._write(number, **command)
        return await asyncio.wait_for(self._answers[number].get(), WITHIN)

    def _write(self, number: int, **command: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"host": number, **command}).encode() + b"\n")

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        assert self._process.stdout
        async for line in self._process.stdout:
            said = json.loads(line)
            if said["event"] == "ask":
                tasks.create_task(self._ask(said["host"], said["params"]))
            else:
                self._answers[said["host"]].put_nowait(said)

    async def _ask(self, number: int, params: Json) -> None:
        self._write(number, answer=await self._asks[number](params))


class _NodeHost:
    def __init__(self, node: Node, number: int, version: str) -> None:
        self._node, self._number, self.version = node, number, version

    async def call(self, tool: str, **arguments: Any) -> Answer:
        said = await self._node.tell(self._number, call=tool, arguments=arguments)
        assert said["event"] == "result", said
        return Answer(said["text"], said["refused"], said["data"])

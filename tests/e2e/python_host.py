"""An MCP host on the official Python SDK, as a program: `python -m tests.e2e.python_host URL url|none`.

It signs in through OAuth, then calls the tools that it reads about on stdin, one JSON object a line:
`{"call": NAME, "arguments": {...}}`. What happens is written to stdout in the same form, each line with
an `event`: `authorize` (a person is to open `url`), `connected`, `ask` (a server sends the person to
`url`), `result` and `failed`. `host.mjs` is the same on the TypeScript SDK.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult

PATIENCE = 60  # seconds for one request; the server holds an open question for 20


def tell(event: str, **values: Any) -> None:
    sys.stdout.write(json.dumps({"event": event} | values) + "\n")
    sys.stdout.flush()


class Memory:
    """Keeps the registration and the tokens for as long as this program runs."""

    client: OAuthClientInformationFull | None = None
    tokens: OAuthToken | None = None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens


class Loopback:
    """Where the browser brings the answer of the authorization server: RFC 8252 section 7.3."""

    def __init__(self) -> None:
        self._answers: asyncio.Queue[dict[str, list[str]]] = asyncio.Queue()

    async def listen(self) -> str:
        """Open a free port. Returns the redirect URI."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = server  # or it would be closed as garbage
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"

    async def answer(self) -> AuthorizationCodeResult:
        query = await self._answers.get()
        if "error" in query:
            raise RuntimeError(f"The authorization was refused: {query['error'][0]}")
        return AuthorizationCodeResult(
            code=query["code"][0], state=query.get("state", [None])[0], iss=query.get("iss", [None])[0]
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        target = urlsplit(head.split(b" ", 2)[1].decode("ascii"))
        if found := target.path == "/callback":
            self._answers.put_nowait(parse_qs(target.query))
        status = "200 OK" if found else "404 Not Found"
        body = "Signed in." if found else "Nothing here."
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode("ascii")
        )
        await writer.drain()
        writer.close()


async def show(url: str) -> None:
    tell("authorize", url=url)


async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """The person agrees to open the page. What they decide there, this host never learns."""
    assert isinstance(params, ElicitRequestURLParams)
    tell("ask", url=params.url, message=params.message)
    return ElicitResult(action="accept")


async def obey(client: Client) -> None:
    """Make the calls that stdin asks for, until it ends."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        try:
            result = await client.call_tool(command["call"], command["arguments"])
        except Exception as exc:  # noqa: BLE001 - whatever it is, the test is to read it
            tell("failed", message=f"{type(exc).__name__}: {exc}")
            continue
        text = "\n".join(block.text for block in result.content if block.type == "text")
        tell("result", text=text, refused=bool(result.is_error), data=result.structured_content)


async def main(url: str, elicitation: str) -> None:
    loopback = Loopback()
    metadata = OAuthClientMetadata(
        client_name="End-to-end host (Python)",
        redirect_uris=[await loopback.listen()],
    )
    auth = OAuthClientProvider(url, metadata, Memory(), show, loopback.answer)
    async with httpx2.AsyncClient(auth=auth, timeout=PATIENCE) as http:
        transport = streamable_http_client(url, http_client=http)
        callback = ask if elicitation == "url" else None
        async with Client(transport, elicitation_callback=callback, cache=None) as client:
            tools = await client.list_tools()
            tell("connected", tools=[tool.name for tool in tools.tools], version=client.protocol_version)
            await obey(client)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

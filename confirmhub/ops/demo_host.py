"""What the demo's host needs to sign in: a place for its tokens, and a port that takes the answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.auth import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult
from pydantic import AnyUrl

from confirmhub.oauth import client as oauth

PATIENCE = 60.0  # seconds for one request; the server holds an open question for 20
_LONGEST = 16 * 1024  # bytes of a request to the loopback port


class Refused(Exception):
    """The authorization server's answer was no. The text is its error code."""


@dataclass
class Memory:
    """Registration and tokens, for as long as the demo runs."""

    client: OAuthClientInformationFull | None = None
    tokens: OAuthToken | None = None
    granted: list[str] = field(default_factory=list)
    """Every refresh token that there was: each time that more was allowed, another began."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens
        if tokens.refresh_token:
            self.granted.append(tokens.refresh_token)


class Loopback:
    """A free port of this machine that takes the redirect (RFC 8252 section 7.3)."""

    def __init__(self) -> None:
        self.uri = ""
        self._answers: asyncio.Queue[dict[str, list[str]]] = asyncio.Queue()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_LONGEST)
        self.uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"
        try:
            yield
        finally:
            server.close()

    async def answer(self) -> AuthorizationCodeResult:
        """The code that the browser brought. The SDK checks state and issuer.

        Raises:
            Refused: The person said no, or the server did.
        """
        query = await self._answers.get()
        if "code" not in query:
            raise Refused(query.get("error", ["no code came back"])[0])
        return AuthorizationCodeResult(
            code=query["code"][0], state=query.get("state", [None])[0], iss=query.get("iss", [None])[0]
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            target = urlsplit(head.split(b" ", 2)[1].decode("ascii"))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError, ValueError):
            writer.close()
            return
        known = target.path == "/callback"
        if known:
            self._answers.put_nowait(parse_qs(target.query))
        status, body = ("200 OK", "Done. Go back to the terminal.") if known else ("404 Not Found", "")
        answer = [
            f"HTTP/1.1 {status}",
            "Content-Type: text/plain",
            "Connection: close",
            f"Content-Length: {len(body)}",
            "",
            body,
        ]
        writer.write("\r\n".join(answer).encode("ascii"))
        await writer.drain()
        writer.close()


@asynccontextmanager
async def connected(
    mcp_url: str,
    *,
    show_sign_in: Callable[[str], Awaitable[None]],
    show_page: Callable[[str, str], Awaitable[None]],
) -> AsyncIterator[Client]:
    """The SDK's own client, signed in. `show_page` gets the address of a question and the server's words.

    It declares URL elicitation: the server may ask it to open a page. At the end it gives its tokens back.

    Raises:
        UnsafeServerError: The server, or the authorization server that it names, is not one to sign in to.
    """

    async def open_page(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context  # the SDK's signature
        if not isinstance(params, ElicitRequestURLParams):
            return ElicitResult(action="decline")  # it declared no forms, so this is none of its business
        await show_page(params.url, params.message)
        return ElicitResult(action="accept")

    loopback, memory = Loopback(), Memory()
    async with loopback.listening():
        metadata = OAuthClientMetadata(client_name="confirmhub demo", redirect_uris=[AnyUrl(loopback.uri)])
        async with oauth.http_client(
            mcp_url,
            client_metadata=metadata,
            storage=memory,
            redirect_handler=show_sign_in,
            callback_handler=loopback.answer,
            timeout=PATIENCE,
        ) as http:
            transport = streamable_http_client(mcp_url, http_client=http)
            try:
                async with Client(transport, elicitation_callback=open_page, cache=None) as client:
                    yield client
            finally:
                await _give_back(http, memory)


async def _give_back(http: httpx2.AsyncClient, memory: Memory) -> None:
    """End what this run was allowed (RFC 7009), so that it is no longer among the connected programs."""
    assert isinstance(http.auth, oauth.Host)
    known = http.auth.context.oauth_metadata
    if memory.client is None or known is None or known.revocation_endpoint is None:
        return
    for token in memory.granted:
        form = {"token": token, "token_type_hint": "refresh_token", "client_id": memory.client.client_id}
        with contextlib.suppress(httpx2.HTTPError):  # of a server that is gone; they end by themselves
            await http.post(str(known.revocation_endpoint), data=form, auth=httpx2.Auth())

"""The other side: ourselves as the host that signs in to a server of somebody's choosing.

The SDK's client, with what it lets pass refused: an authorization server that does not say that it supports
PKCE with S256, metadata that is another server's, plain http, and addresses that a server must not make us
reach. All that is in what servers say of themselves and of each other; `http_client` holds it together.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable

import anyio
import httpcore2
import httpx2
from anyio import to_thread
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls
from mcp.shared.auth import OAuthClientMetadata

from confirmhub import display
from confirmhub.oauth import fetcher, metadata, redirects

MAX_BYTES = 64 * 1024  # of one answer of an authorization server
ANSWER_WITHIN = 10.0  # seconds for its body; a server that drips is not waited for
BOUNDED = "confirmhub.bounded"  # the extension of a request whose answer is bounded so
ADDRESSES = 3  # of one name, which are tried
LOOK_UP_WITHIN = 5.0  # seconds
DIAL = 5.0  # seconds for one address

type SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class UnsafeServerError(OAuthFlowError):
    """What a server said of itself would take us where we do not go. The text is fit to be shown."""


class Reach:
    """Where the client of one server may go.

    To public addresses, over https. The server's own host is the choice of whoever runs us, so it may be
    a private one, as inside a company: its certificate says that it is the one. If it is this machine,
    others on this machine may be reached as well, and over http: that is development.
    """

    def __init__(self, server_url: str) -> None:
        parts = redirects.split(server_url)
        self._host = (parts.hostname if parts else None) or ""
        self._develops = redirects.is_loopback(self._host)
        self.check(server_url)

    def check(self, url: str) -> None:
        """Let `url` be used.

        Raises:
            UnsafeServerError: It is not https, nor http on this machine in development.
        """
        parts = redirects.split(url)
        host = (parts.hostname if parts else None) or ""
        if not parts or not host or "@" in parts.netloc:
            raise UnsafeServerError(f"{_shown(url)} is no address of a server.")
        on_this_machine = self._develops and redirects.is_loopback(host)
        if parts.scheme != "https" and not (parts.scheme == "http" and on_this_machine):
            raise UnsafeServerError(f"{_shown(url)} is not https, so nothing is sent there.")

    async def find(self, host: str, port: int) -> list[str]:
        """The addresses of `host`, all of which may be reached.

        Raises:
            UnsafeServerError: One must not be.
            OSError: There are none.
        """
        with anyio.fail_after(LOOK_UP_WITHIN):
            found = await to_thread.run_sync(fetcher.system_resolve, host, port, abandon_on_cancel=True)
        if not found:
            raise OSError("no address")
        for address in found:
            if not self._admits(host, address):
                raise UnsafeServerError(
                    f"{_shown(host)} is at {_shown(address)}, which is not a public address, so nothing is"
                    " sent there."
                )
        return found

    def _admits(self, host: str, address: str) -> bool:
        if redirects.is_loopback(address):
            return self._develops and redirects.is_loopback(host)
        chosen = host == self._host and not self._develops
        return chosen or fetcher.is_public(address)


class Host(OAuthClientProvider):
    """The SDK's OAuth client for one MCP server, with the guards."""

    def __init__(
        self,
        server_url: str,
        *,
        reach: Reach,
        client_metadata: OAuthClientMetadata,
        storage: TokenStorage,
        redirect_handler: Callable[[str], Awaitable[None]],
        callback_handler: Callable[[], Awaitable[AuthorizationCodeResult]],
    ) -> None:
        async def guarded(url: str) -> None:
            await self._check_page(url)
            await redirect_handler(url)

        super().__init__(server_url, client_metadata, storage, guarded, callback_handler)
        self._reach = reach

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = super()._auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                ours = outgoing is not request
                if ours:
                    self._check_request(outgoing)
                response = yield outgoing
                outgoing = await flow.asend(await _checked(outgoing, response) if ours else response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _check_request(self, outgoing: httpx2.Request) -> None:
        self._reach.check(str(outgoing.url))
        outgoing.headers["Accept-Encoding"] = "identity"  # what is bounded is what is sent
        outgoing.extensions[BOUNDED] = True
        # Codes, tokens and registrations go to endpoints that checked metadata names, and not, as the SDK
        # would have it for servers of the first hour, to paths that are guessed.
        if outgoing.method != "GET" and self.context.oauth_metadata is None:
            raise UnsafeServerError(
                f"No authorization server says how to sign in to {_shown(self.context.server_url)}"
                " (RFC 8414), so nothing is sent."
            )

    async def _check_page(self, url: str) -> None:
        # The browser looks the name up again by itself; a page that would not be public now is not opened.
        self._reach.check(url)
        parts = httpx2.URL(url)
        try:
            await self._reach.find(parts.host, parts.port or 443)
        except (OSError, TimeoutError) as error:
            raise UnsafeServerError(f"{_shown(parts.host)} has no address.") from error


def http_client(
    server_url: str,
    *,
    client_metadata: OAuthClientMetadata,
    storage: TokenStorage,
    redirect_handler: Callable[[str], Awaitable[None]],
    callback_handler: Callable[[], Awaitable[AuthorizationCodeResult]],
    timeout: float,
) -> httpx2.AsyncClient:
    """An HTTP client that signs in to the MCP server at `server_url` when it is asked to.

    `timeout` is in seconds, for one request. The other arguments are those of the SDK's
    `OAuthClientProvider`.

    Raises:
        UnsafeServerError: `server_url` is not https, nor http on this machine. Requests raise it, too.
    """
    reach = Reach(server_url)
    host = Host(
        server_url,
        reach=reach,
        client_metadata=client_metadata,
        storage=storage,
        redirect_handler=redirect_handler,
        callback_handler=callback_handler,
    )
    return httpx2.AsyncClient(auth=host, transport=_Transport(reach), timeout=timeout, trust_env=False)


async def _checked(asked: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """The answer of an authorization server, refused where it is metadata that is not to be used."""
    body = await response.aread()
    path = asked.url.path
    if response.status_code != 200 or not (
        path.startswith("/.well-known/oauth-authorization-server")
        or "/.well-known/openid-configuration" in path
    ):
        return response
    try:
        fields = metadata.parse(body)
    except metadata.UnusableMetadataError:
        # Such as the page that some sites answer everything with: the SDK goes on to the next place.
        return httpx2.Response(404, request=asked)
    _check_metadata(fields, at=str(asked.url))
    return response


def _check_metadata(fields: dict[str, object], *, at: str) -> None:
    """Let the authorization server metadata in `fields`, which was found at the URL `at`, be used.

    RFC 8414 section 3.3: it must name the issuer whose well-known URL `at` is. MCP 2026-07-28,
    authorization security: it must say that PKCE is supported, and with S256.

    Raises:
        UnsafeServerError: It does not.
    """
    issuer = fields.get("issuer")
    if not isinstance(issuer, str) or at not in _places(issuer):
        raise UnsafeServerError(
            f"The metadata at {_shown(at)} is of the issuer {_shown(str(issuer))}, which is another, so it is"
            " not used."
        )
    methods = fields.get("code_challenge_methods_supported")
    if methods is None:
        raise UnsafeServerError(
            f"{_shown(at)} does not say that PKCE is supported (code_challenge_methods_supported), so nobody"
            " is sent there to sign in."
        )
    if not isinstance(methods, list) or "S256" not in methods:
        raise UnsafeServerError(
            f"{_shown(at)} supports no S256, but {_shown(str(methods))}, so nobody is sent there to sign in."
        )


def _places(issuer: str) -> list[str]:
    """The URLs at which the metadata of `issuer` may stand."""
    parts = redirects.split(issuer)
    # As a string (RFC 8414 section 3.3): another spelling of the same server is not the same.
    if parts is None or not issuer.startswith(f"{parts.scheme}://{parts.netloc}"):
        return []
    return build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer)


class _Transport(httpx2.AsyncHTTPTransport):
    """Connections to where `Reach` says, each to an address that was looked at."""

    def __init__(self, reach: Reach) -> None:
        trust = ssl.create_default_context()
        super().__init__(verify=trust, trust_env=False)
        # A name is looked up once, and the address that was found good is the one dialled; the certificate
        # must still be the name's.
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=trust, network_backend=_Dialler(reach))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if request.extensions.get(BOUNDED):
            where = _shown(str(request.url))
            if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
                await response.aclose()
                raise UnsafeServerError(f"{where} answers compressed, unasked.")
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Bounded(response.stream, where)
        return response


class _Bounded(httpx2.AsyncByteStream):
    """A body of at most `MAX_BYTES`, within `ANSWER_WITHIN`."""

    def __init__(self, body: httpx2.AsyncByteStream, where: str) -> None:
        self._body, self._where = body, where

    async def __aiter__(self) -> AsyncIterator[bytes]:
        ends, read = anyio.current_time() + ANSWER_WITHIN, 0
        chunks = aiter(self._body)
        while True:
            try:
                with anyio.fail_after(ends - anyio.current_time()):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise UnsafeServerError(f"{self._where} answers too slowly.") from error
            if chunk is None:
                return
            read += len(chunk)
            if read > MAX_BYTES:
                raise UnsafeServerError(f"{self._where} answers with too much.")
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


class _Dialler(httpcore2.AsyncNetworkBackend):
    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await self._reach.find(host.strip("[]"), port)
        except (OSError, TimeoutError) as error:
            raise httpcore2.ConnectError(f"{_shown(host)} has no address") from error
        failed: Exception = httpcore2.ConnectError("no address")
        for address in addresses[:ADDRESSES]:
            try:
                return await self._network.connect_tcp(
                    address, port, min(timeout or DIAL, DIAL), local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


def _shown(value: str) -> str:
    return display.short(value, 200)

"""The ASGI side of the bridge: the exact paths that it serves, and what is checked before the SDK runs.

The order matters. Host and Origin come first, since a page in a browser that was led to a loopback
address (DNS rebinding) must learn nothing, not even whether a token is needed. The scope of a call is
judged by the body that will run, never by a header that a client can set as it likes.

The answer to a POST is one JSON document, not a stream. A round is held for at most 20 seconds (45 where a
tool is asked to wait), which is under the 60 seconds after which hosts and proxies are known to give up, so
there is nothing to keep alive. It costs this: no progress is told while a person is waited for, one call
cannot wait for minutes, and `notifications/cancelled` reaches nothing. A host cancels by closing its request;
the wait ends then and the confirmation is left as it is, for the next call to pick up. A stream would bring
progress, for a task and an open response more for each waiting host, an `Accept` that plain HTTP clients do
not send, and proxies that must not buffer. What redeems does not rest on the choice: it is a task of its own,
which a client that leaves cannot split.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.db import Error as DatabaseError
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.streamable_http import check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from confirmhub import display
from confirmhub.confirmations.errors import Busy
from confirmhub.confirmations.strict import NotStrict
from confirmhub.oauth import stepup
from confirmhub.oauth.scopes import BASE
from mcp_bridge import acting, auth, body, lookups, registry, server, threads

logger = logging.getLogger(__name__)

PATH = "/mcp"
SHOWN = 100  # characters of an offending value in an answer


class Bridge(NamedTuple):
    """What the root application mounts, and what it runs while it serves."""

    routes: list[BaseRoute]
    running: Callable[[], AbstractAsyncContextManager[None]]


def build() -> Bridge:
    """Build a bridge that can be run once."""
    tools = registry.load(modules=["mcp_bridge.tools.hub", *settings.GUARDED_TOOLS])
    mcp = server.build(tools=tools)
    mcp.streamable_http_app(  # for its session manager; the routes are ours
        stateless_http=True,
        json_response=True,
        # Checked here before anything else, for the metadata too, and with 403 as MCP 2026-07-28 wants.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    manager = mcp.session_manager
    endpoint = _Endpoint(manager, scopes={found.tool.name: found.scopes for found in tools})

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(threads.running())
            await stack.enter_async_context(lookups.running())
            await stack.enter_async_context(acting.running())
            await stack.enter_async_context(manager.run())
            yield

    routes: list[BaseRoute] = [
        Route(PATH, endpoint=_Local(endpoint)),
        Route(f"{PATH}/", endpoint=_Local(_elsewhere)),
        Route(auth.METADATA_PATH, endpoint=_Local(_metadata)),
    ]
    return Bridge(routes, running)


class _Local:
    """Lets only requests through that were meant for this host and come from no foreign page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # RFC 9110 section 5.5: the white space around a value is not part of it. Not every HTTP parser
        # takes it off, and the SDK compares values with the body's.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        headers = Headers(scope=scope)
        response = _foreign("Host", headers.getlist("host"), allowed=_hosts(), required=True) or _foreign(
            "Origin", headers.getlist("origin"), allowed={settings.PUBLIC_URL}, required=False
        )
        await (response or self.app)(scope, receive, send)


class _Endpoint:
    """POST /mcp: size, strict JSON, token, scope; then the SDK."""

    def __init__(self, manager: StreamableHTTPSessionManager, *, scopes: dict[str, frozenset[str]]) -> None:
        self.app = AuthContextMiddleware(manager.handle_request)
        self.scopes = scopes
        self.backend = BearerAuthBackend(auth.Verifier())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = _unacceptable(request)
        if response is None:
            try:
                raw = await body.read(request=request)
                message = body.parse(raw)
            except body.TooLarge:
                response = _refusal(413, f"The body is larger than {body.MAX_BYTES} bytes.")
            except body.TooSlow:
                response = _refusal(408, "The body did not arrive in time.")
            except NotStrict as exc:
                response = _refusal(400, f"The body {exc}.", code=PARSE_ERROR)
            else:
                response = await self._authorize_or_fail(scope, message)
        if response is not None:
            await response(scope, receive, send)
        else:
            await self.app(scope, body.replay(raw, receive), send)

    async def _authorize_or_fail(self, scope: Scope, message: object) -> Response | None:
        try:
            return await self._authorize(scope, message)
        except (Busy, DatabaseError):
            logger.exception("a token could not be looked up")
            return _refusal(
                503, "The database does not answer. Try again.", code=INTERNAL_ERROR, retry_after=2
            )

    async def _authorize(self, scope: Scope, message: object) -> Response | None:
        # A batch would carry several calls past a check of one. MCP has none since 2025-06-18.
        if not isinstance(message, dict):
            return _refusal(400, "The body must be one JSON-RPC object.")
        # MCP 2025-06-18, requests: a text or an integer, and not null. The SDK takes what has another for a
        # notification of the old protocols, and drops it with an answer that says that it was taken.
        if type(message.get("id", "")) not in (str, int):
            return _refusal(400, "The id of a call must be a text or an integer.")
        sent = Headers(scope=scope).getlist("authorization")
        found = await self.backend.authenticate(HTTPConnection(scope)) if len(sent) == 1 else None
        if found is None:
            challenge = auth.unauthorized(token_was_sent=bool(sent))
            return _refusal(401, "An access token of this server is needed.", challenge=challenge)
        credentials, user = found
        scope["auth"], scope["user"] = credentials, user

        held, needed = frozenset(credentials.scopes), self._needed(message)
        if needed <= held:
            return None
        # A refresh would bring the same scopes again, and some clients would do just that.
        await threads.in_thread(stepup.mark, token=user.access_token.token, needed=needed)
        lacks = ", ".join(sorted(needed - held))
        return _refusal(
            403, f"The access token lacks {lacks}.", challenge=auth.insufficient(held=held, needed=needed)
        )

    def _needed(self, message: dict[object, object]) -> frozenset[str]:
        params = message.get("params")
        name = (
            params.get("name") if message.get("method") == "tools/call" and isinstance(params, dict) else None
        )
        # An unknown tool is the SDK's to refuse; it runs nothing.
        return self.scopes.get(name, frozenset()) if isinstance(name, str) else frozenset()


async def _elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
    """The address as people like to write it into the settings of a host."""
    where = f"The endpoint is {settings.MCP_RESOURCE}, without a slash after it."
    await _refusal(404, f"There is nothing at this address. {where}")(scope, receive, send)


async def _metadata(scope: Scope, receive: Receive, send: Send) -> None:
    """RFC 9728 protected resource metadata."""
    if scope["method"] not in ("GET", "HEAD"):
        response: Response = _refusal(405, "This address is read with GET.", allow="GET, HEAD")
    else:
        document = {
            "resource": settings.MCP_RESOURCE,
            "authorization_servers": [settings.ISSUER],
            "scopes_supported": list(BASE),
            "bearer_methods_supported": ["header"],
            "resource_name": "confirmhub",
        }
        response = JSONResponse(document, headers={"Cache-Control": "public, max-age=3600"})
    await response(scope, receive, send)


def _hosts() -> set[str]:
    parts = urlsplit(settings.PUBLIC_URL)
    default = {"http": ":80", "https": ":443"}[parts.scheme]
    host = parts.netloc.lower()
    return {host, host.removesuffix(default), host if parts.port else host + default}


def _foreign(name: str, values: list[str], *, allowed: set[str], required: bool) -> Response | None:
    if not values and required:
        return _refusal(403, f"A {name} header is needed.")
    for value in values:
        if value.lower() not in allowed:
            shown = display.short(value, SHOWN)
            return _refusal(403, f"{name} {shown} is not served here. Use {settings.PUBLIC_URL}.")
    return _refusal(403, f"More than one {name} header was sent.") if len(values) > 1 else None


def _unacceptable(request: Request) -> Response | None:
    if request.method != "POST":
        return _refusal(
            405, "This endpoint keeps no sessions and no streams; it takes POST alone.", allow="POST"
        )
    kind = ", ".join(request.headers.getlist("content-type"))
    if kind.partition(";")[0].strip().lower() != "application/json":
        shown = display.short(kind, SHOWN)
        return _refusal(415, f"The content type must be application/json, not {shown}.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        return _refusal(415, "The body must be sent without a content encoding.")
    if not check_accept_headers(request)[0]:
        return _refusal(
            406,
            "The answer is JSON, which is not accepted. Send Accept: application/json, text/event-stream.",
        )
    return None


def _refusal(
    status: int,
    message: str,
    *,
    code: int = INVALID_REQUEST,
    challenge: str | None = None,
    allow: str | None = None,
    retry_after: int | None = None,
) -> Response:
    named = {"WWW-Authenticate": challenge, "Allow": allow, "Retry-After": retry_after}
    headers = {name: str(value) for name, value in named.items() if value is not None}
    # JSON-RPC 2.0 section 5: the id is null where the request was not read as one.
    answer = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return JSONResponse(answer, status_code=status, headers={"Cache-Control": "no-store", **headers})

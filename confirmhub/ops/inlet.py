"""What every request passes before it is routed, and its body before one of Django's threads is taken.

Django's threads are few. What a stranger can send slowly, or in any amount, is waited for and measured here,
where waiting costs a task and no thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from http import HTTPStatus
from urllib.parse import urlsplit

from django.conf import settings
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from confirmhub.api.errors import UNREAD
from confirmhub.ops.layers import Layer, refuse
from confirmhub.ops.wire import MAX_HEADER_BYTES
from mcp_bridge import body

MAX_HEADERS = 100  # browsers and hosts send some 20
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - RFC 9110 section 5.6.2
_PARAMETER = rf"[ \t]*;[ \t]*({_TOKEN})=({_TOKEN}|\"[^\"\\\x00-\x1f\x7f-\xff]*\")"
_TYPE = re.compile(rf"({_TOKEN}/{_TOKEN})((?:{_PARAMETER})*)[ \t]*;?")
_UTF8 = ("utf-8", "utf8", "us-ascii")


class _UnknownType(Exception):
    pass


class Gate(Layer):
    """Lets only requests through that were meant for this host, with headers of an ordinary size.

    A name that somebody else's DNS leads here (DNS rebinding) must bring up no page and no file. `unnamed`
    are paths that answer under any name: they tell nothing, or say no in words of their own.
    """

    def __init__(self, app: ASGIApp, *, unnamed: Collection[str]) -> None:
        super().__init__(app)
        self.unnamed = frozenset(unnamed)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._refusal(scope) or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = scope["headers"]
        size, named = 0, []
        for name, value in headers:
            size += len(name) + len(value)
            if name == b"host":
                named.append(value.strip(b" \t").decode("latin-1").lower())
        if len(headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
            return _refuse(scope, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers are too large.")
        if scope["path"] in self.unnamed:
            return None
        if len(named) != 1 or named[0] not in hosts(public_url=settings.PUBLIC_URL):
            return _refuse(
                scope, HTTPStatus.BAD_REQUEST, f"That host is not served here. Use {settings.PUBLIC_URL}."
            )
        return None


class Inlet(Layer):
    """Reads the whole body, within bounds of size and time, before the application behind it starts.

    Neither does Django see a content type that it would stumble over: it reads that, and by its charset the
    query, before anything of ours runs, and what it raises there nobody turns into an answer.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            scope["headers"] = _plain(scope["headers"])
            raw = await body.read(request=Request(scope, receive))
        except _UnknownType:
            answer = _refuse(scope, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The content type is not understood.")
            await answer(scope, receive, send)
        except body.TooLarge:
            answer = _refuse(
                scope,
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The body is larger than {body.MAX_BYTES} bytes.",
            )
            await answer(scope, receive, send)
        except body.TooSlow:
            answer = _refuse(scope, HTTPStatus.REQUEST_TIMEOUT, "The body did not arrive in time.")
            await answer(scope, receive, send)
        else:
            await self.app(scope, body.replay(raw, receive), send)


@cache
def hosts(*, public_url: str) -> frozenset[str]:
    """The values of a Host header that mean us: the one name that people and hosts are given."""
    parts = urlsplit(public_url)
    name = parts.netloc.lower() if parts.port is None else parts.netloc.lower().rpartition(":")[0]
    default = {"http": 80, "https": 443}[parts.scheme]
    port = parts.port or default
    return frozenset({f"{name}:{port}"} | ({name} if port == default else set()))


def _plain(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers as Django may see them: one content type at most, with no charset, which is UTF-8.

    WSGI cannot tell `_` in a name from `-`, so that a name with it could pass for one that a proxy sets.

    Raises:
        _UnknownType: It is malformed, there are several, or its charset is another.
    """
    kept = [(name, value) for name, value in headers if name != b"content-type" and b"_" not in name]
    sent = [value for name, value in headers if name == b"content-type" and value.strip()]
    if not sent:
        return kept
    match = (
        _TYPE.fullmatch(sent[0].decode("latin-1").strip()) if len(sent) == 1 and len(sent[0]) < 200 else None
    )
    if match is None:
        raise _UnknownType
    kind, parameters = match[1], re.findall(_PARAMETER, match[2])
    for name, value in parameters:
        if "*" in name or (name.lower() == "charset" and value.strip('"').lower() not in _UTF8):
            raise _UnknownType
    others = [f"; {name}={value}" for name, value in parameters if name.lower() != "charset"]
    return [*kept, (b"content-type", (kind + "".join(others)).encode("ascii"))]


def _refuse(scope: Scope, status: HTTPStatus, words: str) -> Response:
    # The rest of what is sent is not read.
    close = {"Connection": "close"}
    return refuse(scope, status=status, code=UNREAD[status], words=words, headers=close)

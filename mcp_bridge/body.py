"""The body of a request: bounded, and JSON that no two readers can read differently."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from confirmhub.confirmations import actions, strict

MAX_BYTES = 64 * 1024
MAX_DEPTH = actions.MAX_DEPTH + 16  # and what MCP wraps around the arguments
READ_WITHIN = 10.0  # seconds, so that slow senders do not pile up


class TooLarge(Exception):
    """The body is over 64 KiB."""


class TooSlow(Exception):
    """The body did not come within its time."""


async def read(*, request: Request) -> bytes:
    """The whole body, and no more than may be.

    Raises:
        TooLarge: It is over 64 KiB, or says that it will be.
        TooSlow: It did not come within 10 seconds, or its sender left.
    """
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or len(declared) > 9 or int(declared) > MAX_BYTES:
        raise TooLarge
    body = bytearray()
    try:
        async with asyncio.timeout(READ_WITHIN):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise TooLarge
    except (TimeoutError, ClientDisconnect) as exc:
        raise TooSlow from exc
    return bytes(body)


def parse(raw: bytes) -> object:
    """Parse JSON strictly: the SDK parses the same bytes again, and must find the same in them.

    Raises:
        NotStrict: As `strict.parse`, or it is nested deeper than 80 levels. The text says which.
    """
    return strict.parse(raw=raw, max_depth=MAX_DEPTH)


def replay(raw: bytes, receive: Receive) -> Receive:
    """Give a body that was read to the application behind, as if it came now."""
    messages: list[Message] = [{"type": "http.request", "body": raw, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed

"""The body of a request: bounded, and JSON that no two readers can read differently."""

from __future__ import annotations

import json
import math
import re

import anyio
from starlette.requests import ClientDisconnect, Request

MAX_BYTES = 64 * 1024
MAX_DEPTH = 80  # the arguments' own 64, and what MCP wraps around them
READ_WITHIN = 10.0  # seconds, so that slow senders do not pile up

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


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
        with anyio.fail_after(READ_WITHIN):
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
        ValueError: It is not UTF-8 JSON, holds a key twice in one object, NaN, Infinity or a number
            beyond a double, or is nested deeper than 80 levels. The text says which.
    """
    if _depth(raw) > MAX_DEPTH:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ValueError("it is not valid UTF-8") from exc
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_double)
    except json.JSONDecodeError as exc:
        raise ValueError(f"{exc.msg} at character {exc.pos}") from exc


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for byte in _STRING.sub(b"", raw):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it holds the same key twice in one object")
    return found


def _constant(name: str) -> object:
    raise ValueError(f"it holds {name}, which is not JSON")


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("it holds a number out of range")
    return value

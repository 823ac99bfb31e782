"""What the tests of the reader of HTTP share: an application, and what is sent to it and read from it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import threading
from typing import Any, cast

from starlette.types import Message, Receive, Scope, Send

from confirmhub.ops import web

MANY = 4 * 1024 * 1024  # bytes: far more than may be
ENDLESS = 32 * 1024 * 1024  # bytes: more than the buffers of two sockets hold
PART = 32 * 1024  # bytes


class Echo:
    """Answers with what came; `/slow` when it is told to, `/parts` in two parts, `/early` before the body.

    `/size/N` is answered with N bytes, in parts.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.ended = threading.Event()
        self.config = web.config(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.append(scope["path"])
        body, message = b"", cast(Message, {"more_body": True})
        while message.get("more_body") and not scope["path"].startswith("/early"):
            message = await receive()
            body += message.get("body", b"")
        if scope["path"] == "/slow":
            await asyncio.to_thread(self.go_on.wait, 20)
        if scope["path"].startswith("/size/"):
            await self._send_much(int(scope["path"].rpartition("/")[2]), send)
            return
        names = [name.decode() for name, _ in scope["headers"]]
        said = json.dumps({"path": scope["path"], "body": body.decode(), "names": names}).encode()
        length = (b"content-length", b"%d" % len(said))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        if scope["path"] in ("/parts", "/early-parts"):
            await asyncio.to_thread(self.go_on.wait, 20)
        await send({"type": "http.response.body", "body": said[:5], "more_body": True})
        await send({"type": "http.response.body", "body": said[5:]})

    async def _send_much(self, size: int, send: Send) -> None:
        length = (b"content-length", b"%d" % size)
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        for at in range(0, size, PART):
            part = b"a" * min(PART, size - at)
            await send({"type": "http.response.body", "body": part, "more_body": at + PART < size})
        self.ended.set()


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *lines, "", ""]).encode()


def one(connection: socket.socket) -> tuple[bytes, dict[str, Any]]:
    """The head and the body of the next answer."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)
    assert len(body) == length
    found: dict[str, Any] = json.loads(body) if head.startswith(b"HTTP/1.1 200") else {}
    return head, found


def push(connection: socket.socket, piece: bytes) -> int:
    """Send without end; how many bytes were taken until no more were, or the other side closed."""
    connection.settimeout(1)
    sent = 0
    with contextlib.suppress(OSError):
        while sent < ENDLESS:
            sent += connection.send(piece)
    connection.settimeout(20)
    return sent


def drip(connection: socket.socket, piece: bytes) -> None:
    """Send a little now and then, for 20 seconds."""
    for _ in range(1_000):
        connection.sendall(piece)
        select.select([], [], [], 0.02)


def rest(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65_536):
            received += part
    return received


class Pipe(asyncio.Transport):
    """A transport that remembers what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: Any) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.written.append(b"closed")

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.written.append(b"aborted")

    def get_write_buffer_size(self) -> int:
        return 0

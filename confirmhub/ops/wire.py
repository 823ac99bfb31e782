"""The reader of what comes over the wire: httptools, which is fast and bounds nothing, held to bounds.

One request of a connection is read at a time: nobody makes work ahead of the answers that they take.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# What may come before a body, and around the parts of one: a line, headers, trailers.
MAX_HEADER_BYTES = 64 * 1024
MAX_AHEAD = 256 * 1024  # bytes; as much as is read at once
_VERSIONS = ("1.0", "1.1")
_INVALID = "Invalid HTTP request received."
_TOO_LARGE = "The request's headers are too large."


class _Refused(Exception):
    """The parser accepts it; we do not."""


class _Ahead(Exception):
    """The next request came in one piece with the last."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._spare = 0  # bytes that have come since the last that ended headers or were of a body
        self._ahead = b""  # what has come before the answer to what came before it
        self._in_head = False
        self._is_deaf = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(cast(asyncio.Transport, _Joining(transport, self.loop)))

    def data_received(self, data: bytes) -> None:
        if self._is_deaf or self.transport.is_closing():
            return
        if self._is_answering():
            self._ahead += data
            if len(self._ahead) > MAX_AHEAD:
                self._read_no_more()
            return
        self._unset_keepalive_if_required()
        self._spare += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._read_no_more()  # the offer of another protocol is not taken (RFC 9110 section 7.8)
        except httptools.HttpParserError as exc:
            if isinstance(exc.__context__, _Ahead):
                self._read_no_more()
            else:
                self._refuse(_INVALID)
        else:
            if self._spare > MAX_HEADER_BYTES:
                self._refuse(_TOO_LARGE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._ahead:
            data, self._ahead = self._ahead, b""
            # Not in the context of the request that was answered.
            self.loop.call_soon(self.data_received, data, context=contextvars.Context())

    def on_message_begin(self) -> None:
        if self._is_answering():
            raise _Ahead
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer is no header, and none is known here (RFC 9110 section 6.5.1)
        # After another coding, two readers could differ on where the body ends (RFC 9112 section 6.1).
        if name.lower() == b"transfer-encoding" and value.lower() != b"chunked":
            raise _Refused
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        # What names another host than the Host header does is for proxies (RFC 9112 section 3.2.2).
        if (
            self.parser.get_http_version() not in _VERSIONS
            or not self.url.startswith(b"/")
            or b"#" in self.url
        ):
            raise _Refused
        self._in_head = False
        self._spare = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._spare = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._spare = 0
        super().on_message_complete()

    def _is_answering(self) -> bool:
        """Whether a request is here as a whole, and its answer is not."""
        return self.cycle is not None and not (self.cycle.more_body or self.cycle.response_complete)

    def _read_no_more(self) -> None:
        """Answer what was asked, and close: who sent more sends it again (RFC 9112 section 9.3.2)."""
        self._is_deaf, self._ahead = True, b""
        self.cycle.keep_alive = False

    def _refuse(self, words: str) -> None:
        self._is_deaf = True
        self.logger.warning(words)
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()  # a second answer would pass for a part of the first
        else:
            self.send_400_response(words)


class _Joining:
    """A transport that sends what is written twice in one step at once: an answer's head and its body.

    Each time the kernel is called costs as much as half of what we do of our own, here and at the caller.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held = b""
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading

    def write(self, data: bytes) -> None:
        if not data:
            return
        if self._held:
            data, self._held = self._held + data, b""
            self._transport.write(data)
        else:
            self._held = data
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        data, self._held = self._held, b""
        if data:
            self._transport.write(data)

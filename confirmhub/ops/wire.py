"""The reader of what comes over the wire: httptools, which is fast and bounds nothing, held to bounds.

One request of a connection is read at a time: nobody makes work ahead of the answers that they take.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

# What may come before a body, and around the parts of one: a line, headers, trailers.
MAX_HEADER_BYTES = 64 * 1024
# Fields, each of which costs far more than its bytes. `inlet` refuses half as many in each reader's own form.
MAX_HEADERS = 200
# A body of as much as is ever taken, 64 KiB, may come in parts of one byte, each of which costs five more.
MAX_BODY_BYTES = 512 * 1024
MAX_AHEAD = 128 * 1024  # bytes; headers and a body
HEAD_WITHIN = 10.0  # seconds, from the first byte, or for the first request from the start of the connection
# Seconds in which a reader takes enough of an answer that more can be written, and, at the end, all of it.
TAKEN_WITHIN = 30.0
# An answer is lost where a connection is closed over what its reader still sends (RFC 9112 section 9.6).
LINGER, MAX_LINGER = 1.0, 256 * 1024  # seconds, bytes
_VERSIONS = ("1.0", "1.1")
_INVALID = "Invalid HTTP request received."
_TOO_LARGE = "The request's headers are too large."
_TOO_LONG = "The request's body is too large."
_TOO_MANY = f"The request has more than {MAX_HEADERS} header fields. Send fewer."
_TOO_SLOW = "The request's headers did not arrive in time."
_UNTAKEN = "An answer was not taken in time."


class _Refused(Exception):
    """The parser accepts it; we do not."""


class _TooMany(Exception):
    """There are more header fields than may be."""


class _Ahead(Exception):
    """The next request came in one piece with the last."""


class _Refusals:
    """Tells the log who was cut off, in one line a second at most: a flood of them must fill no disk."""

    def __init__(self) -> None:
        self._untold = 0
        self._next_at = -math.inf

    def tell(self, words: str, client: tuple[str, int] | None) -> None:
        now = time.monotonic()
        if now < self._next_at:
            self._untold += 1
            return
        host, _ = client or ("-", 0)
        more = f"; {self._untold:,} more since the last such line" if self._untold else ""
        log.warning("%s From %s%s.", words, host, more)
        self._untold, self._next_at = 0, now + 1


log = logging.getLogger(__name__)
_refusals = _Refusals()


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._spare = 0  # bytes that have come since the last that ended headers or were of a body
        self._taken = 0  # bytes that have come since the headers
        self._ahead = bytearray()  # what has come before the answer to what came before it
        self._in_head = False
        self._is_deaf = False
        self._keeps = False  # whether the connection stays once this request has come as a whole
        self._head_timer: asyncio.TimerHandle | None = None
        self._taking_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        joining = _Joining(transport, self.loop, lingers=self._is_cut_short, give_up=self._give_up)
        super().connection_made(cast(asyncio.Transport, joining))
        self._head_timer = self.loop.call_later(HEAD_WITHIN, self._end_head)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_head_timer()
        self._unset_keepalive_if_required()
        self._unset_taking_timer()
        self._ahead.clear()
        self._joining.lost()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking_timer = self.loop.call_later(TAKEN_WITHIN, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unset_taking_timer()

    def shutdown(self) -> None:
        self._keeps = False
        if self.transport.is_closing():
            self._joining.end()
        else:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            self._joining.discard(len(data))
        elif self._is_deaf:
            self.flow.pause_reading()
        # What came first goes first: its turn may not have come when the socket is read again.
        elif self._ahead or self._is_answering():
            self._ahead += data
            if len(self._ahead) > MAX_AHEAD:
                self._read_no_more()
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        self._spare += len(data)
        self._taken += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._read_no_more()  # the offer of another protocol is not taken (RFC 9110 section 7.8)
        except httptools.HttpParserError as exc:
            if isinstance(exc.__context__, _Ahead):
                self._read_no_more()
            elif isinstance(exc.__context__, _TooMany):
                self._refuse(_TOO_MANY, status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            else:
                self._refuse(_INVALID)
        else:
            self._bound()

    def _bound(self) -> None:
        """Hold what was read, and is no whole request yet, to its bounds."""
        if self._spare > MAX_HEADER_BYTES:
            self._refuse(_TOO_LARGE, status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._in_head:
            if self._head_timer is None:
                self._head_timer = self.loop.call_later(HEAD_WITHIN, self._end_head)
        elif self.cycle is not None and self.cycle.more_body:
            if self.cycle.response_started:
                self._read_no_more()
            elif self._taken > MAX_BODY_BYTES:
                self._refuse(_TOO_LONG, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._ahead and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            # Not in the context of the request that was answered.
            self.loop.call_soon(self._go_on, context=contextvars.Context())

    def _go_on(self) -> None:
        data, self._ahead = bytes(self._ahead), bytearray()
        if data:
            self.data_received(data)

    def on_message_begin(self) -> None:
        if self._is_answering():
            raise _Ahead
        self._unset_keepalive_if_required()
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer is no header, and none is known here (RFC 9110 section 6.5.1)
        # After another coding, two readers could differ on where the body ends (RFC 9112 section 6.1).
        # Readers of HTTP/1.0 know no coding at all: there its framing is faulty.
        if name.lower() == b"transfer-encoding" and (
            value.lower() != b"chunked" or self.parser.get_http_version() == "1.0"
        ):
            raise _Refused
        if len(self.headers) >= MAX_HEADERS:
            raise _TooMany
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
        self._spare = self._taken = 0
        self._unset_head_timer()
        super().on_headers_complete()
        # Who answers before the body has come wants no more of it: the connection ends with that answer.
        self._keeps, self.cycle.keep_alive = self.cycle.keep_alive, False

    def on_body(self, body: bytes) -> None:
        self._spare = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._spare = 0
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._keeps
        super().on_message_complete()

    @property
    def _joining(self) -> _Joining:
        return cast(_Joining, self.transport)

    def _is_answering(self) -> bool:
        """Whether a request is here as a whole, and its answer is not."""
        return self.cycle is not None and not (self.cycle.more_body or self.cycle.response_complete)

    def _is_cut_short(self) -> bool:
        """Whether more may come than was read."""
        return self._is_deaf or (self.cycle is not None and self.cycle.more_body)

    def _read_no_more(self) -> None:
        """Answer what was asked, and close: who sent more sends it again (RFC 9112 section 9.3.2)."""
        self._is_deaf, self._ahead = True, bytearray()
        self.cycle.keep_alive = False
        self.flow.pause_reading()
        if self.cycle.response_complete:
            self.transport.close()

    def _end_head(self) -> None:
        self._head_timer = None
        if self.transport.is_closing():
            return
        if self._in_head:
            self._refuse(_TOO_SLOW, status=HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.transport.close()  # nothing was asked

    def _unset_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _unset_taking_timer(self) -> None:
        if self._taking_timer is not None:
            self._taking_timer.cancel()
            self._taking_timer = None

    def _give_up(self) -> None:
        """Close over what a reader does not take: it would hold the connection and its request for ever."""
        _refusals.tell(_UNTAKEN, self.client)
        self.transport.abort()

    def _refuse(self, words: str, *, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        self._is_deaf = True
        _refusals.tell(words, self.client)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application gets no more, and is heard no more
            self.cycle.message_event.set()
        # A second answer would pass for a part of the first.
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            self.transport.write(
                STATUS_LINE[status] + b"content-type: text/plain; charset=utf-8\r\n"
                b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(words), words.encode("ascii"))
            )
        self.transport.close()


class _Joining:
    """A transport that sends what is written twice in one step at once: an answer's head and its body.

    Each time the kernel is called costs as much as half of what we do of our own, here and at the caller.

    Where `lingers` says that more may come, it is closed for what is written, and for what comes a little
    later: until the other side has closed too, or sent and waited for as much as may be. Whom it waits for to
    take the rest of an answer, at the end, it does not wait for longer than may be: then it has `give_up`.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        *,
        lingers: Callable[[], bool],
        give_up: Callable[[], None],
    ) -> None:
        self._transport, self._loop, self._lingers, self._give_up = transport, loop, lingers, give_up
        self._held = b""
        self._timer: asyncio.TimerHandle | None = None
        self._last_timer: asyncio.TimerHandle | None = None
        self._left = MAX_LINGER
        self.get_extra_info = transport.get_extra_info
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading
        self.abort = transport.abort

    def is_closing(self) -> bool:
        return self._timer is not None or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if not data or self._timer is not None:
            return
        if self._held:
            data, self._held = self._held + data, b""
            self._transport.write(data)
        else:
            self._held = data
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        if self._timer is not None:
            return
        self._flush()
        if self._lingers() and not self._transport.is_closing():
            self._timer = self._loop.call_later(LINGER, self.end)
            self._transport.write_eof()
            self._transport.resume_reading()
        else:
            self.end()

    def discard(self, amount: int) -> None:
        """Count what comes after the end, in bytes."""
        self._left -= amount
        if self._left < 0:
            self.end()

    def end(self) -> None:
        """Wait for no more to come."""
        self._transport.close()
        if self._last_timer is None and self._transport.get_write_buffer_size():
            self._last_timer = self._loop.call_later(TAKEN_WITHIN, self._give_up)

    def lost(self) -> None:
        """Forget what was waited for."""
        for timer in (self._timer, self._last_timer):
            if timer is not None:
                timer.cancel()

    def _flush(self) -> None:
        data, self._held = self._held, b""
        if data:
            self._transport.write(data)

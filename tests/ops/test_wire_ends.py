"""What the reader of HTTP does not wait for, and in which order it reads what came early."""

from __future__ import annotations

import asyncio
import json
import select
import socket

import pytest
import uvicorn

from confirmhub.ops import wire
from tests.ops.wiring import ENDLESS, Echo, Pipe, drip, get, one, push, rest

ENDLESS_POST = b"POST %b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_an_answer_before_the_body_ends_the_connection(connection: socket.socket) -> None:
    connection.sendall(ENDLESS_POST % b"/early")

    head, told = one(connection)

    assert told["path"] == "/early"
    assert b"\r\nconnection: close" in head
    assert push(connection, b"1\r\nx\r\n" * 1000) < ENDLESS
    assert rest(connection) == b""


def test_a_body_is_not_read_on_while_the_answer_is_given(connection: socket.socket, echo: Echo) -> None:
    connection.sendall(ENDLESS_POST % b"/early-parts")
    assert b" 200 " in connection.recv(65_536)

    assert push(connection, b"1\r\nx\r\n" * 1000) < ENDLESS
    echo.go_on.set()

    assert rest(connection).endswith(b"}")


def test_a_body_larger_than_anybody_takes_is_not_read_on(connection: socket.socket, echo: Echo) -> None:
    connection.sendall(ENDLESS_POST % b"/a")

    assert push(connection, b"1\r\nx\r\n" * 1000) < ENDLESS
    assert rest(connection).startswith(b"HTTP/1.1 413 ")


def test_who_sends_a_body_on_after_the_answer_can_read_the_answer(connection: socket.socket) -> None:
    connection.sendall(b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\na")
    assert connection.recv(1, socket.MSG_PEEK) == b"H"

    connection.sendall(b"a" * 199_999)
    head, told = one(connection)

    assert told["path"] == "/early"
    assert b"\r\nconnection: close" in head
    assert connection.recv(1) == b""  # no reset


def test_a_connection_that_is_closed_over_a_body_is_not_held_open(
    connection: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LINGER", 0.05)
    connection.sendall(ENDLESS_POST % b"/early")
    one(connection)
    assert connection.recv(1) == b""

    with pytest.raises(ConnectionError):  # a closed socket answers what comes with a reset
        drip(connection, b"1\r\nx\r\n")


def test_many_header_fields_are_refused(connection: socket.socket, echo: Echo) -> None:
    connection.sendall(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (wire.MAX_HEADERS + 2))

    answered = rest(connection)

    assert answered.startswith(b"HTTP/1.1 431 ")
    assert b"Send fewer" in answered
    assert echo.asked == []


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"\r\n", b"", id="an-empty-line"),
        pytest.param(b"G", b"HTTP/1.1 408 ", id="a-byte"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n", b"HTTP/1.1 408 ", id="a-part"),
    ],
)
def test_headers_that_do_not_come_in_time_are_not_waited_for(
    served: tuple[Echo, int], monkeypatch: pytest.MonkeyPatch, sent: bytes, answered: bytes
) -> None:
    monkeypatch.setattr(wire, "HEAD_WITHIN", 0.1)
    with socket.create_connection(("127.0.0.1", served[1]), timeout=20) as connection:
        connection.sendall(sent)

        assert rest(connection)[:13] == answered


def test_the_headers_of_a_later_request_have_their_time_too(
    connection: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.sendall(get("/a"))
    one(connection)
    monkeypatch.setattr(wire, "HEAD_WITHIN", 0.1)
    connection.sendall(b"G")

    assert rest(connection).startswith(b"HTTP/1.1 408 ")


def test_a_line_that_begins_no_request_keeps_no_connection_open(
    served: tuple[Echo, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served[0].config, "timeout_keep_alive", 0.2)
    with socket.create_connection(("127.0.0.1", served[1]), timeout=20) as connection:
        connection.sendall(get("/a"))
        one(connection)
        connection.sendall(b"\r\n")

        assert rest(connection) == b""


def test_a_request_in_time_outlives_the_time_for_its_headers(
    served: tuple[Echo, int], monkeypatch: pytest.MonkeyPatch, echo: Echo
) -> None:
    monkeypatch.setattr(wire, "HEAD_WITHIN", 0.1)
    with socket.create_connection(("127.0.0.1", served[1]), timeout=20) as connection:
        connection.sendall(get("/slow"))
        assert select.select([connection], [], [], 0.3) == ([], [], [])
        echo.go_on.set()

        assert one(connection)[1]["path"] == "/slow"


def test_what_comes_between_an_answer_and_what_waited_for_it_stays_behind_that() -> None:
    echo = Echo()
    echo.config.log_config = None
    inner = get("/inner")

    async def talk() -> bytes:
        loop, pipe = asyncio.get_running_loop(), Pipe()
        echo.config.load()
        protocol = wire.Protocol(echo.config, uvicorn.server.ServerState(), {}, _loop=loop)
        protocol.connection_made(pipe)
        protocol.data_received(get("/slow"))
        protocol.data_received(b"POST /outer HTTP/1.1\r\nHost: a\r\n")
        echo.go_on.set()
        for _ in iter(lambda: protocol.cycle.response_complete, True):
            await asyncio.sleep(0)
        protocol.data_received(b"Content-Length: %d\r\n\r\n" % len(inner))
        protocol.data_received(inner)
        for _ in iter(lambda: echo.asked[-1] == "/outer" and protocol.cycle.response_complete, True):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        protocol.connection_lost(None)
        return b"".join(pipe.written)

    answered = asyncio.run(asyncio.wait_for(talk(), 20))

    assert echo.asked == ["/slow", "/outer"]
    assert json.dumps(inner.decode()).encode() in answered

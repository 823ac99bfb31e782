"""The reader of what comes over the wire: what strangers send in any amount, or so that readers differ."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from confirmhub.ops import wire
from tests.ops.wiring import ENDLESS, MANY, Echo, Pipe, get, one, push, rest

CHUNKED = b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"


@pytest.mark.parametrize(
    ("first", "more"),
    [
        pytest.param(b"GET /", b"a" * 8192, id="a-path"),
        pytest.param(b"GET / HTTP/1.1\r\n", b"X-A: " + b"a" * 8192 + b"\r\n", id="headers"),
        pytest.param(b"GET / HTTP/1.1\r\nX-A: ", b"a" * 8192, id="a-value"),
        pytest.param(b"GET / HTTP/1.1\r\n", b"a" * 8192, id="a-name"),
        pytest.param(b"", b"\r\n" * 4096, id="empty-lines"),
        pytest.param(CHUNKED + b"1;", b"a" * 8192, id="a-chunk-extension"),
        pytest.param(CHUNKED + b"0\r\n", b"X-A: " + b"a" * 8192 + b"\r\n", id="trailers"),
        pytest.param(CHUNKED + b"0\r\nX-A: ", b"a" * 8192, id="a-trailers-value"),
    ],
)
def test_what_has_no_end_is_cut_off(connection: socket.socket, echo: Echo, first: bytes, more: bytes) -> None:
    sent = 0
    with contextlib.suppress(ConnectionError):
        connection.sendall(first)
        while sent < MANY:
            connection.sendall(more)
            sent += len(more)

    answered = rest(connection)

    assert sent < MANY or answered.startswith(b"HTTP/1.1 431 ")
    assert b" 200 " not in answered


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", id="absolute-form"),
        pytest.param(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", id="asterisk-form"),
        pytest.param(b"CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", id="authority-form"),
        pytest.param(b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", id="fragment"),
        pytest.param(b"GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", id="not-ascii"),
        pytest.param(b"GET /\r\n", id="http-0.9"),
        pytest.param(b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", id="version-0.9"),
        pytest.param(b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", id="version-2.0"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="http-2"),
        pytest.param(b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", id="unknown-method"),
        pytest.param(b"GET / HTTP/1.1\nHost: a\n\n", id="bare-line-feeds"),
        pytest.param(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", id="space-before-colon"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", id="folded"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\x00\r\n\r\n", id="nul"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\x7f\r\n\r\n", id="delete"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", id="bare-carriage-return"),
        pytest.param(b"GET / HTTP/1.1\r\nH\xc3\xa4: a\r\n\r\n", id="name-not-ascii"),
        pytest.param(CHUNKED.replace(b"chunked", b"gzip, chunked") + b"0\r\n\r\n", id="another-coding"),
        pytest.param(CHUNKED.replace(b"chunked", b"gzip") + b"0\r\n\r\n", id="no-chunks"),
        pytest.param(CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n", id="coded-in-1.0"),
        pytest.param(
            CHUNKED.replace(b"\r\n\r\n1", b"\r\nTransfer-Encoding: chunked\r\n\r\n1") + b"0\r\n\r\n",
            id="coded-twice",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="two-lengths-of-two-kinds",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            id="two-lengths",
        ),
        pytest.param(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na", id="signed-length"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\na", id="listed-length"),
        pytest.param(CHUNKED + b"0x1\r\na\r\n0\r\n\r\n", id="odd-chunk-size"),
        pytest.param(CHUNKED + b"1 \r\na\r\n0\r\n\r\n", id="space-after-chunk-size"),
        pytest.param(CHUNKED + b"1\na\n0\n\n", id="chunks-by-line-feeds"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(
    connection: socket.socket, echo: Echo, sent: bytes
) -> None:
    connection.sendall(sent)
    connection.shutdown(socket.SHUT_WR)

    answered = rest(connection)

    assert answered.startswith(b"HTTP/1.1 400 ") or not answered
    assert sent.startswith(b"POST") or echo.asked == []
    assert b" 200 " not in answered


def test_a_trailer_is_no_header(connection: socket.socket) -> None:
    connection.sendall(CHUNKED + b"0\r\nAuthorization: x\r\n\r\n" + get("/b"))

    _, told = one(connection)

    assert told == {"path": "/a", "body": "x", "names": ["host", "transfer-encoding"]}


def test_a_connection_is_used_again(connection: socket.socket) -> None:
    for path in ("/a", "/b"):
        connection.sendall(get(path))
        assert one(connection)[1]["path"] == path
    connection.sendall(b"\r\n" + CHUNKED + b"0\r\n\r\n")
    assert one(connection)[1]["body"] == "x"
    connection.sendall(b"POST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
    assert one(connection)[1]["body"] == "ab"


def test_a_request_that_comes_before_the_answer_waits_for_it(connection: socket.socket, echo: Echo) -> None:
    connection.sendall(get("/parts"))
    assert b" 200 " in connection.recv(65_536)
    connection.sendall(get("/b"))

    echo.go_on.set()
    answered = connection.recv(65_536)
    while answered.count(b'"path"') < 2:
        answered += connection.recv(65_536)

    assert answered.index(b'"/parts"') < answered.index(b'"/b"')


def test_of_requests_in_one_piece_the_first_is_answered_and_the_rest_is_not_read(
    connection: socket.socket, echo: Echo
) -> None:
    connection.sendall(get("/a") * 1_000)

    head, told = one(connection)

    assert told["path"] == "/a"
    assert b"\r\nconnection: close" in head
    assert rest(connection) == b""
    assert echo.asked == ["/a"]


def test_whoever_sends_on_and_on_before_the_answer_is_not_read_on(
    connection: socket.socket, echo: Echo
) -> None:
    connection.sendall(get("/slow"))
    assert push(connection, get("/b") * 200) < ENDLESS
    echo.go_on.set()

    head, told = one(connection)

    assert told["path"] == "/slow"
    assert b"\r\nconnection: close" in head
    assert echo.asked == ["/slow"]


def test_the_offer_of_another_protocol_is_not_taken(connection: socket.socket, echo: Echo) -> None:
    connection.sendall(
        get("/a", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAM")
    )

    head, told = one(connection)

    assert told["path"] == "/a"
    assert b"\r\nconnection: close" in head
    assert rest(connection) == b""


def test_the_head_and_the_body_go_in_one_piece_and_neither_waits_for_the_other() -> None:
    pipe = Pipe()

    async def write() -> None:
        loop = asyncio.get_running_loop()
        joining = wire._Joining(pipe, loop, lingers=lambda: False, give_up=pipe.abort)
        joining.write(b"head")
        joining.write(b"body")
        joining.write(b"")
        joining.write(b"alone")
        await asyncio.sleep(0)
        joining.write(b"last")
        joining.close()
        await asyncio.sleep(0)

    asyncio.run(write())

    assert pipe.written == [b"headbody", b"alone", b"last", b"closed"]

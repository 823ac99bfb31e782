"""Whoever does not take an answer holds nothing for long, and whoever is refused fills no log."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Iterator

import pytest

from confirmhub.ops import wire
from tests.notifications.support import eventually
from tests.ops.conftest import Log
from tests.ops.wiring import Echo, get, rest

LARGE = 4 * 1024 * 1024  # bytes: more than is kept in all buffers on the way
SMALL = 60_000  # bytes: less than the server writes ahead, more than the kernel keeps here


@pytest.fixture(autouse=True)
def refusals(monkeypatch: pytest.MonkeyPatch) -> wire._Refusals:
    """Nothing was told yet."""
    fresh = wire._Refusals()
    monkeypatch.setattr(wire, "_refusals", fresh)
    return fresh


@pytest.fixture
def reader(served: tuple[Echo, int], echo: Echo) -> Iterator[socket.socket]:
    """Somebody for whom little is kept that they have not taken."""
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.settimeout(20)
        opened.connect(("127.0.0.1", served[1]))
        yield opened


def test_what_answers_waits_for_no_reader_that_takes_nothing(
    reader: socket.socket, echo: Echo, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    monkeypatch.setattr(wire, "TAKEN_WITHIN", 0.1)
    reader.sendall(get(f"/size/{LARGE}"))

    assert echo.ended.wait(20)
    assert len(rest(reader)) < LARGE
    assert len([line for line in log.lines if "An answer was not taken in time. From 127.0.0.1" in line]) == 1


def test_the_rest_of_an_answer_that_nobody_takes_keeps_no_connection(
    reader: socket.socket, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    monkeypatch.setattr(wire, "TAKEN_WITHIN", 0.1)
    reader.sendall(get(f"/size/{SMALL}", "Connection: close"))

    eventually(lambda: any("not taken in time" in line for line in log.lines))
    assert len(rest(reader)) < SMALL


def test_a_slow_reader_gets_all_of_it(reader: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "TAKEN_WITHIN", 1.5)
    reader.sendall(get(f"/size/{LARGE}", "Connection: close"))

    until, received = time.monotonic() + 1.8, 0
    while time.monotonic() < until:
        received += len(reader.recv(16_384))
        select.select([], [], [], 0.01)
    assert received < LARGE // 2
    received += len(rest(reader))

    assert received > LARGE


def test_a_flood_of_what_is_refused_writes_a_line_a_second(
    served: tuple[Echo, int], refusals: wire._Refusals, log: Log
) -> None:
    began = time.monotonic()

    for _ in range(40):
        with socket.create_connection(("127.0.0.1", served[1]), timeout=20) as connection:
            connection.sendall(b"garbage\r\n\r\n")
            assert rest(connection).startswith(b"HTTP/1.1 400 ")

    told = [json.loads(line)["message"] for line in log.lines]
    assert told[0] == "Invalid HTTP request received. From 127.0.0.1."
    assert len(told) <= 1 + time.monotonic() - began
    assert refusals._untold > 0


def test_the_next_line_counts_those_of_which_nothing_was_said(refusals: wire._Refusals, log: Log) -> None:
    for _ in range(1_201):
        refusals.tell("No.", ("192.0.2.1", 1))
    refusals._next_at = 0
    refusals.tell("No.", None)

    assert [json.loads(line)["message"] for line in log.lines] == [
        "No. From 192.0.2.1.",
        "No. From -; 1,200 more since the last such line.",
    ]

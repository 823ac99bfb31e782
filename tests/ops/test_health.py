"""`/healthz` tells the parts apart, and asking it costs little."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager

import pytest
from django.db import connection
from mcp.server.request_state import AESGCMRequestStateCodec
from pytest_django import Settings
from starlette.requests import Request

from confirmhub.ops import health, heartbeat
from tests.ops.service import free_port


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ThreadPoolExecutor(max_workers=1) as checker:
        monkeypatch.setattr(health, "_checker", checker)
        monkeypatch.setattr(health, "_asked", (float("-inf"), None))
        yield


def ask() -> tuple[int, dict[str, object]]:
    answer = asyncio.run(health.healthz(Request({"type": "http"})))
    return answer.status_code, json.loads(bytes(answer.body))


@pytest.mark.django_db
def test_it_is_ready_when_every_part_is() -> None:
    heartbeat.beat(name="worker")
    heartbeat.beat(name="beat")

    assert health.check() == dict.fromkeys(health.PARTS, True)


@pytest.mark.django_db
@pytest.mark.parametrize("silent", ["worker", "beat"])
def test_a_process_that_fell_silent_is_missing(silent: str) -> None:
    heartbeat.beat(name="worker")
    heartbeat.beat(name="beat")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ops_heartbeat SET at = at - interval '31 s' WHERE name = %s", [silent])

    assert health.check() == dict.fromkeys(health.PARTS, True) | {silent: False}


@pytest.mark.django_db
def test_a_migration_that_was_not_applied_is_missing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'confirmations'")

    assert not health.check()["migrations"]


@pytest.mark.django_db
def test_an_empty_database_is_no_failure_of_the_check() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE ops_heartbeat")

    assert health.check() == dict.fromkeys(health.PARTS, False) | {"database": True}


def test_what_is_missing_is_named_and_nothing_else_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "check", lambda: dict.fromkeys(health.PARTS, True) | {"beat": False})

    status, answer = ask()

    assert status == 503
    assert answer == {
        "ready": False,
        "missing": ["beat"],
        "parts": dict.fromkeys(health.PARTS, True) | {"beat": False},
    }


@pytest.mark.django_db
def test_a_broker_that_is_away_is_missing(settings: Settings) -> None:
    heartbeat.beat(name="worker")
    heartbeat.beat(name="beat")
    settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{free_port()}"

    assert health.check() == dict.fromkeys(health.PARTS, True) | {"broker": False}


@contextmanager
def silent() -> Iterator[int]:
    """A port where connections are taken, and nobody ever says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@contextmanager
def black_hole() -> Iterator[int]:
    """A port where no connection is taken or refused, as behind a firewall that drops."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as stack:
        for _ in range(3):  # more than the queue holds
            caller = stack.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
@pytest.mark.parametrize("place", [silent, black_hole])
def test_a_broker_that_never_answers_is_missing_before_patience_ends(
    settings: Settings, place: Callable[[], AbstractContextManager[int]], scheme: str
) -> None:
    with place() as port:
        settings.CELERY_BROKER_URL = f"{scheme}://127.0.0.1:{port}"
        began = time.monotonic()
        answers = health._broker_answers()

    assert not answers
    assert time.monotonic() - began < health.PATIENCE


@pytest.mark.parametrize("keys", [[], ["short"], ["k" * 40, "k" * 40]])
def test_keys_that_seal_nothing_are_missing(settings: Settings, keys: list[str]) -> None:
    settings.SEALING_KEYS = keys

    assert not health._keys_open_what_they_seal()


def test_keys_that_do_not_open_what_they_sealed_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    other = AESGCMRequestStateCodec(["o" * 40]).seal(b"")
    monkeypatch.setattr(AESGCMRequestStateCodec, "seal", lambda *_: other)

    assert not health._keys_open_what_they_seal()


def test_a_check_that_is_not_done_in_time_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    released = threading.Event()
    monkeypatch.setattr(health, "check", lambda: dict.fromkeys(health.PARTS, released.wait(30)))
    monkeypatch.setattr(health, "PATIENCE", 0.05)

    try:
        assert ask() == (
            503,
            {
                "ready": False,
                "missing": list(health.PARTS),
                "parts": dict.fromkeys(health.PARTS, False),
            },
        )
    finally:
        released.set()
    assert "was not done in 0.05 s" in caplog.text


def test_a_database_that_hangs_is_missing_and_holds_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    calls: list[None] = []

    def hang() -> dict[str, bool]:
        calls.append(None)
        released.wait(30)
        return dict.fromkeys(health.PARTS, True)

    monkeypatch.setattr(health, "check", hang)
    monkeypatch.setattr(health, "PATIENCE", 0.05)

    try:
        assert [ask()[0] for _ in range(3)] == [503, 503, 503]
        assert len(calls) == 1
    finally:
        released.set()


def test_many_who_ask_at_once_share_one_check(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []

    def check() -> dict[str, bool]:
        calls.append(None)
        return dict.fromkeys(health.PARTS, True)

    monkeypatch.setattr(health, "check", check)

    async def crowd() -> set[int]:
        answers = await asyncio.gather(*(health.healthz(Request({"type": "http"})) for _ in range(50)))
        return {answer.status_code for answer in answers}

    assert asyncio.run(crowd()) == {200}
    assert len(calls) == 1

"""A stop keeps nobody waiting, and is no failure in the log."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from pytest_django import Settings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from confirmhub.aap.routes import PREFIX
from confirmhub.confirmations import waiting
from confirmhub.confirmations.models import Confirmation
from confirmhub.ops import web
from confirmhub.ops.stopping import Ending, Server
from tests.bench.pages import session
from tests.bridge.hosts import call_message, make_token, post
from tests.bridge.serving import served
from tests.factories import make_pending, principal_for
from tests.notifications.support import eventually
from tests.ops.conftest import Log

TROUBLE = ("WARNING", "ERROR", "CRITICAL")


class Callers:
    """Requests that are under way, each in a thread, and what they were answered by name."""

    def __init__(self) -> None:
        self.answers: dict[str, httpx2.Response | httpx2.TransportError] = {}
        self.threads: list[threading.Thread] = []

    def call(self, name: str, request: Callable[[], httpx2.Response]) -> None:
        def run() -> None:
            try:
                self.answers[name] = request()
            except httpx2.TransportError as exc:
                self.answers[name] = exc

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(timeout=20)


def test_who_waits_is_answered_at_once_when_the_server_stops(
    transactional_db: None,
    alice: User,
    settings: Settings,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    settings.FILE_ROOTS = [tmp_path]
    file = tmp_path / "report.txt"
    file.touch()
    callers = Callers()
    with served() as url:
        log: Log = request.getfixturevalue("log")  # which a server that starts would configure away
        token = make_token(alice, resource=f"{url}/mcp")
        row = make_pending(principal_for(alice))
        bearer, cookie = {"Authorization": f"Bearer {token}"}, {"Cookie": session(alice)}
        place = f"{url}/api/v1/confirmations/{row.id}/wait?timeout=30"
        delete = call_message("delete_file", {"path": str(file)})
        post(url, delete, token=token)  # the question; the same call again is held
        callers.call("service", lambda: httpx2.get(place, headers=bearer, timeout=60))
        callers.call("host", lambda: post(url, delete, token=token))
        callers.call("browser", lambda: httpx2.get(f"{url}/live", headers=cookie, timeout=60))
        eventually(lambda: _waiting() == (2, 1))
    callers.join()

    answers = {name: str(getattr(each, "text", each)) for name, each in callers.answers.items()}
    assert Confirmation.objects.filter(status="pending").count() == 2
    assert '"status":"pending"' in answers["service"]
    assert "Nothing has been done yet" in answers["host"]
    # A browser connects again after a stream that ends without a last event.
    assert "data: " in answers["browser"]
    assert "event: end" not in answers["browser"]
    assert log.lines != []
    assert [line for line in log.lines if any(f'"{level}"' in line for level in TROUBLE)] == []


def _waiting() -> tuple[int, int]:
    """How many wait for a decision, and how many for any change."""
    now = waiting._current
    return (sum(map(len, now.waiting.values())), len(now.watching)) if now else (0, 0)


async def hang(_: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def endless() -> AsyncIterator[bytes]:
    yield b"data: 1\n\n"
    await asyncio.Event().wait()


async def stream(_: Request) -> Response:
    return StreamingResponse(endless(), media_type="text/event-stream")


async def half(_: Request) -> Response:
    return StreamingResponse(endless(), media_type="text/plain")


async def half_of_so_much(_: Request) -> Response:
    return StreamingResponse(endless(), headers={"Content-Length": "100"})


@contextlib.contextmanager
def stubborn(*, calls: int) -> Iterator[str]:
    """A server whose answers never end, and that stops when it has so many calls."""
    routes = [
        Route("/hang", hang),
        Route("/act", hang, methods=["POST"]),
        Route("/api/v1/confirmations", hang, methods=["GET", "POST"]),
        Route(f"{PREFIX}/requests", hang, methods=["POST"]),
        Route("/mcp", hang, methods=["POST"]),
        Route("/stream", stream),
        Route("/half", half),
        Route("/sized", half_of_so_much),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(Ending)])
    with socket.create_server(("127.0.0.1", 0)) as listener, override_settings(LOGGING=None):
        server = Server(web.config(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        eventually(lambda: len(server.server_state.tasks) == calls)
        server.should_exit = True
        thread.join(timeout=20)
        assert not thread.is_alive()


def test_what_a_stop_cuts_off_is_told_so_and_is_no_trace_in_the_log(
    monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    monkeypatch.setattr(web, "GRACE", 0.1)
    callers = Callers()
    with stubborn(calls=6) as url:
        for path in ("/hang", "/stream", "/half", "/sized"):
            callers.call(path, lambda path=path: httpx2.get(f"{url}{path}", timeout=60))
        for path in ("/act", "/mcp"):
            callers.call(path, lambda path=path: httpx2.post(f"{url}{path}", json={}, timeout=60))
    callers.join()

    hung, streamed = callers.answers["/hang"], callers.answers["/stream"]
    assert isinstance(hung, httpx2.Response)
    assert (hung.status_code, hung.headers["Retry-After"]) == (503, "1")
    assert "Ask again" in hung.text
    for path in ("/act", "/mcp"):
        acted = callers.answers[path]
        assert isinstance(acted, httpx2.Response)
        assert acted.status_code == 503
        assert "Retry-After" not in acted.headers  # nor is it told to ask again
        assert "may be under way or done" in acted.text
        assert "Ask again" not in acted.text
    called = callers.answers["/mcp"]
    assert isinstance(called, httpx2.Response)
    assert called.headers["Content-Type"] == "application/json"
    assert called.json()["jsonrpc"] == "2.0"
    assert "get_confirmation before you call again" in called.json()["error"]["message"]
    assert isinstance(streamed, httpx2.Response)
    assert streamed.text == "data: 1\n\n"
    for path in ("/half", "/sized"):
        assert isinstance(callers.answers[path], httpx2.RemoteProtocolError)
    assert "Traceback" not in "".join(log.lines)


def test_programs_that_a_stop_cuts_off_are_told_so_in_their_own_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "GRACE", 0.1)
    callers = Callers()
    with stubborn(calls=3) as url:
        api = f"{url}/api/v1/confirmations"
        callers.call("read", lambda: httpx2.get(api, timeout=60))
        callers.call("act", lambda: httpx2.post(api, json={}, timeout=60))
        callers.call("aap", lambda: httpx2.post(f"{url}{PREFIX}/requests", json={}, timeout=60))
    callers.join()

    read, act, aap = (callers.answers[name] for name in ("read", "act", "aap"))
    assert isinstance(read, httpx2.Response)
    assert isinstance(act, httpx2.Response)
    assert isinstance(aap, httpx2.Response)
    for problem in (read, act):
        assert problem.headers["Content-Type"] == "application/problem+json"
        assert (problem.status_code, problem.json()["type"]) == (503, "urn:confirmhub:cut_off")
    assert read.headers["Retry-After"] == "1"
    assert "Retry-After" not in act.headers
    assert "may be under way or done" in act.json()["title"]
    assert (aap.status_code, aap.json()["error"]["code"]) == (503, "cut_off")

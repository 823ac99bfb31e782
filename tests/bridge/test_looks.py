"""A look that hangs costs its own caller a while, and nobody else anything."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoDbBlocker

from mcp_bridge import acting, rounds, threads
from tests.bridge import gated
from tests.bridge.gated import PATIENCE, Gate
from tests.bridge.hosts import call_message, make_token, post
from tests.bridge.serving import served
from tests.bridge.test_coroutines import ask
from tests.bridge.turns import WITH_THE_TOOL, row_of, text
from tests.factories import kinds_of_events

UNSEEN = "The tool did not get to see its target in time. Nothing was done. Try again later."


@pytest.fixture(scope="module")
def application(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The public URL of a server with the tools that wait at a gate."""
    with WITH_THE_TOOL, django_db_blocker.unblock(), served() as url:
        yield url


class Hanging:
    """Looks that hang until the test ends, of either kind."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.over = threading.Event()
        self.cancelled = threading.Event()

    def in_a_thread(self) -> None:
        self.begun.release()
        assert self.over.wait(PATIENCE)

    async def on_the_loop(self, _arguments: gated.Pass) -> object:
        self.begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    found = Hanging()
    yield found
    found.over.set()


def test_looks_that_hang_in_threads_keep_no_other_call_waiting(
    url: str, token: str, gate: Gate, hanging: Hanging
) -> None:
    gate.open.set()
    others = [ask(url, token, number, tool=tool) for number, tool in ((90, "pass"), (91, "pass_on_the_loop"))]
    gate.sees = hanging.in_a_thread
    with ThreadPoolExecutor(max_workers=threads.LOOKING) as callers:
        calls = [
            callers.submit(post, url, call_message("pass", {"number": number}), token=token)
            for number in range(threads.LOOKING)
        ]
        for _ in calls:
            assert hanging.begun.acquire(timeout=PATIENCE)
        gate.sees = lambda: None
        told = [text(post(url, message, token=token)) for message in others]
        listed = post(url, call_message("list_confirmations", {}), token=token)
        hanging.over.set()
        asked = [call.result(PATIENCE).json()["result"]["structuredContent"]["status"] for call in calls]

    assert told == ["Passed with 90.", "Passed with 91."]
    assert not listed.json()["result"]["isError"]
    assert asked == ["waiting_for_person"] * threads.LOOKING


def test_a_first_look_that_takes_too_long_is_given_up_and_nobody_is_asked(
    url: str, token: str, gate: Gate, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.sees = hanging.in_a_thread
    monkeypatch.setattr(acting, "LOOK_WITHIN", 0.1)
    monkeypatch.setitem(gated.ON_THE_LOOP.__dict__, "observe", hanging.on_the_loop)
    told = [
        text(post(url, call_message(tool, {"number": 1}), token=token))
        for tool in ("pass", "pass_on_the_loop")
    ]
    listed = post(url, call_message("list_confirmations", {}), token=token).json()["result"]

    assert told == [UNSEEN, UNSEEN]
    assert hanging.cancelled.is_set(), "the coroutine runs on for nobody"
    assert listed["structuredContent"]["confirmations"] == []


def test_a_second_look_that_hangs_ends_its_turn_and_keeps_the_yes(
    url: str, token: str, gate: Gate, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.open.set()
    message = ask(url, token, 1, tool="pass")
    monkeypatch.setattr(acting, "LOOK_WITHIN", 0.1)
    with monkeypatch.context() as patched:
        patched.setitem(gated.PASS.__dict__, "observe", hanging.on_the_loop)
        patched.setitem(gated.PASS.__dict__, "observe_blocks", False)
        told = [text(post(url, message, token=token)) for _ in range(threads.ACTING + 1)]
    events = kinds_of_events(row_of(1))

    assert told == [UNSEEN] * (threads.ACTING + 1)  # more than there are turns
    assert events == ["requested", "approve"]
    assert text(post(url, message, token=token)) == "Passed with 1."


@pytest.mark.parametrize("tool", ["pass", "pass_on_the_loop"])
def test_an_act_may_take_as_long_as_it_takes(
    url: str, token: str, gate: Gate, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    message = ask(url, token, 1, tool=tool)
    monkeypatch.setattr(acting, "LOOK_WITHIN", 0.05)
    with ThreadPoolExecutor(max_workers=1) as caller:
        call = caller.submit(post, url, message, token=token)
        gate.wait_for(1)
        threading.Timer(0.2, gate.open.set).start()
        assert text(call.result(PATIENCE)) == "Passed with 1."


def test_one_caller_cannot_have_all_that_may_be_looked_at(  # noqa: PLR0917 - all are needed
    url: str, token: str, bob: User, gate: Gate, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.open.set()
    monkeypatch.setattr(rounds, "MOST_LOOKING_OF_ONE", 1)
    gate.sees = hanging.in_a_thread
    with ThreadPoolExecutor(max_workers=1) as caller:
        call = caller.submit(post, url, call_message("pass", {"number": 1}), token=token)
        assert hanging.begun.acquire(timeout=PATIENCE)
        gate.sees = lambda: None
        refused = text(post(url, call_message("pass", {"number": 2}), token=token))
        other = post(url, call_message("pass", {"number": 2}), token=make_token(bob, resource=f"{url}/mcp"))
        hanging.over.set()
        call.result(PATIENCE)
    again = post(url, call_message("pass", {"number": 2}), token=token)

    assert "Try again in" in refused
    assert other.json()["result"]["structuredContent"]["status"] == "waiting_for_person"
    assert again.json()["result"]["structuredContent"]["status"] == "waiting_for_person"

"""Guarded tools of coroutine functions: the same walk, on the event loop, with no turn to wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import DjangoDbBlocker

from confirmhub.confirmations.actions import Observation
from mcp_bridge import guarded
from tests.bridge import gated
from tests.bridge.gated import PATIENCE, Gate, Pass
from tests.bridge.hosts import call_message, decide_at, post, send_and_leave
from tests.bridge.serving import served
from tests.bridge.test_turns import LETHAL, raising
from tests.bridge.turns import LAST, WITH_THE_TOOL, crashed, row_of, text
from tests.factories import kinds_of_events
from tests.ops.service import wait_until

TOOL = "pass_on_the_loop"


@pytest.fixture(scope="module")
def application(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The public URL of a server with the tools that wait at a gate."""
    with WITH_THE_TOOL, django_db_blocker.unblock(), served() as url:
        yield url


def ask(url: str, token: str, number: int, *, tool: str = TOOL) -> dict[str, Any]:
    """Ask for it and have it allowed; the message that then has it done."""
    asked = post(url, call_message(tool, {"number": number}), token=token).json()["result"]
    page: str = asked["structuredContent"]["page"]
    decide_at(page)
    return call_message("redeem_confirmation", {"confirmation_id": page.rpartition("/")[2]})


def test_more_act_at_once_than_there_are_threads_and_a_tool_that_blocks_finds_one(
    url: str, token: str, gate: Gate
) -> None:
    messages = [ask(url, token, number) for number in range(LAST + 2)]
    blocking = ask(url, token, LAST + 2, tool="pass")
    with ThreadPoolExecutor(max_workers=LAST + 3) as callers:
        calls = [callers.submit(post, url, message, token=token) for message in (*messages, blocking)]
        gate.wait_for(len(calls))  # all of them act
        gate.open.set()
        told = [text(call.result(PATIENCE)) for call in calls]

    assert told == [f"Passed with {number}." for number in range(LAST + 3)]
    assert gate.acts == dict.fromkeys(range(LAST + 3), 1)
    assert all(gate.loops[number] for number in range(LAST + 2))
    assert kinds_of_events(row_of(0)) == ["requested", "approve", "redeemed", "succeeded"]


def test_a_caller_that_leaves_in_the_middle_ends_neither_the_act_nor_its_report(
    url: str, token: str, gate: Gate
) -> None:
    message = ask(url, token, 1)
    acted = threading.Event()
    gate.ends = acted.set
    send_and_leave(url, message, token=token, when=gate.reached)
    gate.open.set()
    assert acted.wait(PATIENCE)
    wait_until(lambda: len(kinds_of_events(row_of(1))) == 4)

    assert kinds_of_events(row_of(1)) == ["requested", "approve", "redeemed", "succeeded"]
    assert gate.acts[1] == 1


@pytest.mark.parametrize("what", [each for each in LETHAL if each is not asyncio.CancelledError])
def test_what_would_end_a_process_ends_a_coroutine_alone_and_is_on_record(
    url: str, token: str, gate: Gate, what: type[BaseException]
) -> None:
    gate.open.set()
    gate.ends = raising(what)
    message = ask(url, token, 1)
    first, again = (text(post(url, message, token=token)) for _ in range(2))

    assert first == crashed("redeem_confirmation")
    assert "was tried before, and was not tried again. It failed: The tool failed" in again
    assert kinds_of_events(row_of(1)) == ["requested", "approve", "redeemed", "failed"]


def test_an_act_that_is_cut_off_is_recorded_neither_as_done_nor_as_failed(
    url: str, token: str, gate: Gate
) -> None:
    gate.open.set()
    gate.ends = raising(asyncio.CancelledError)
    answer = post(url, ask(url, token, 1), token=token)

    assert "It is being done, or was cut off. Do not assume either" in text(answer)
    assert kinds_of_events(row_of(1)) == ["requested", "approve", "redeemed"]


@pytest.mark.parametrize("what", [each for each in LETHAL if each is not asyncio.CancelledError])
def test_what_would_end_a_process_ends_a_look_alone(
    url: str, token: str, gate: Gate, what: type[BaseException]
) -> None:
    gate.open.set()
    message = ask(url, token, 1)
    gate.sees = raising(what)
    failed = [text(post(url, sent, token=token)) for sent in (call_message(TOOL, {"number": 2}), message)]
    gate.sees = lambda: None

    assert failed == [crashed(TOOL), crashed("redeem_confirmation")]
    assert text(post(url, message, token=token)) == "Passed with 1."


def test_a_target_that_changed_takes_the_yes_back(url: str, token: str, gate: Gate) -> None:
    gate.open.set()
    message = ask(url, token, 1)
    gate.fingerprint = "another"

    assert "The target changed after it was shown." in text(post(url, message, token=token))
    assert kinds_of_events(row_of(1)) == ["requested", "approve", "revoked"]
    assert gate.acts[1] == 0


def test_what_a_plain_function_gives_to_await_is_awaited(url: str, token: str, gate: Gate) -> None:
    gate.open.set()
    told = text(post(url, ask(url, token, 1, tool="pass_later"), token=token))

    assert told == "Passed with 1."
    assert gate.loops[1]


def test_a_transaction_is_not_shared_with_a_coroutine(
    url: str, token: str, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImproperlyConfigured, match="Write it with def, not with async def"):
        replace(gated.ON_THE_LOOP, one_transaction=True)

    monkeypatch.setitem(gated.LATER.__dict__, "one_transaction", True)
    gate.open.set()
    failed = text(post(url, ask(url, token, 1, tool="pass_later"), token=token))
    assert failed == crashed("redeem_confirmation")
    assert kinds_of_events(row_of(1)) == ["requested", "approve"]
    assert gate.acts[1] == 0


class Looks:
    async def __call__(self, arguments: Pass) -> Observation:
        return Observation(facts=(), fingerprint=str(arguments.number))


def test_an_object_that_is_called_like_a_coroutine_function_is_one() -> None:
    assert guarded.is_coroutine_function(Looks())
    assert not guarded.is_coroutine_function(Looks)
    assert not guarded.is_coroutine_function(gated.execute)

"""So many calls act at once as there are turns. Who waits for one has done nothing, whatever comes then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoDbBlocker

from confirmhub.oauth.models import AccessToken
from tests.bridge import gated
from tests.bridge.gated import PATIENCE, Gate
from tests.bridge.hosts import MODERN, call_message, make_token, post, send_and_leave
from tests.bridge.serving import served
from tests.bridge.turns import (
    LAST,
    WITH_THE_TOOL,
    Queue,
    ask,
    crashed,
    last_call,
    row_of,
    take_all_turns,
    text,
)
from tests.factories import kinds_of_events


@pytest.fixture(scope="module")
def application(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The public URL of a server with the tool that waits at a gate."""
    with WITH_THE_TOOL, django_db_blocker.unblock(), served() as url:
        yield url


def test_a_call_that_finds_all_turns_taken_waits_and_is_done(
    url: str, token: str, gate: Gate, queue: Queue, callers: ThreadPoolExecutor
) -> None:
    calls = take_all_turns(url, token, gate, callers)
    last = callers.submit(post, url, last_call(), token=token)
    assert queue.joined.wait(PATIENCE)
    looks, acts = gate.looks[LAST], gate.acts[LAST]
    elsewhere = post(url, call_message("list_confirmations", {}), token=token)
    gate.open.set()

    # What waits was looked at for its question, and by the call that found it allowed.
    assert (looks, acts) == (2, 0)
    assert not elsewhere.json()["result"]["isError"]
    told = [text(call.result(PATIENCE)) for call in (*calls, last)]
    assert told == [f"Passed with {number}." for number in range(LAST + 1)]
    assert gate.acts == dict.fromkeys(range(LAST + 1), 1)
    assert kinds_of_events(row_of(LAST)) == ["requested", "approve", "redeemed", "succeeded"]


@pytest.mark.parametrize("version", [MODERN, "2025-06-18"])
def test_a_caller_that_leaves_before_its_turn_has_done_nothing(  # noqa: PLR0917 - all are needed
    url: str, token: str, gate: Gate, queue: Queue, callers: ThreadPoolExecutor, version: str
) -> None:
    calls = take_all_turns(url, token, gate, callers)
    send_and_leave(url, last_call(), token=token, when=queue.joined, version=version)
    before = gate.looks[LAST]
    gate.open.set()
    assert not any(call.result(PATIENCE).json()["result"]["isError"] for call in calls)
    assert queue.over.wait(PATIENCE)
    after, events = gate.looks[LAST], kinds_of_events(row_of(LAST))
    again = post(url, last_call(), token=token)

    assert before == after
    assert events == ["requested", "approve"]
    assert text(again) == f"Passed with {LAST}."
    assert gate.acts[LAST] == 1


def test_a_token_that_ends_before_its_turn_does_nothing(  # noqa: PLR0917 - all are needed
    url: str, token: str, alice: User, gate: Gate, queue: Queue, callers: ThreadPoolExecutor
) -> None:
    take_all_turns(url, token, gate, callers)
    other = make_token(alice, resource=f"{url}/mcp")
    last = callers.submit(post, url, last_call(), token=other)
    assert queue.joined.wait(PATIENCE)
    AccessToken.objects.latest("pk").delete()
    gate.open.set()

    assert text(last.result(PATIENCE)) == "The access token is good for this no more. Nothing was done."
    assert kinds_of_events(row_of(LAST)) == ["requested", "approve"]
    assert gate.acts[LAST] == 0


LETHAL = [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, asyncio.CancelledError, MemoryError]


def raising(what: type[BaseException]) -> Callable[[], None]:
    def end() -> None:
        raise what

    return end


@pytest.mark.parametrize("what", LETHAL)
def test_what_would_end_a_process_ends_an_act_alone_and_is_on_record(
    url: str, token: str, gate: Gate, what: type[BaseException]
) -> None:
    gate.open.set()
    gate.ends = raising(what)
    message = call_message("redeem_confirmation", {"confirmation_id": ask(url, token, 1)})
    first, again = (text(post(url, message, token=token)) for _ in range(2))

    assert first == crashed("redeem_confirmation")
    assert "was tried before, and was not tried again. It failed: The tool failed" in again
    assert gate.acts[1] == 1
    assert kinds_of_events(row_of(1)) == ["requested", "approve", "redeemed", "failed"]


@pytest.mark.parametrize("what", LETHAL)
def test_what_would_end_a_process_ends_a_look_alone_and_takes_no_yes_back(
    url: str, token: str, gate: Gate, what: type[BaseException]
) -> None:
    gate.open.set()
    first = call_message("pass", {"number": 1})
    last = call_message("redeem_confirmation", {"confirmation_id": ask(url, token, 2)})
    gate.sees = raising(what)
    failed = [post(url, message, token=token) for message in (first, last)]
    gate.sees = lambda: None
    ask(url, token, 1)

    assert [text(each) for each in failed] == [
        crashed("pass"),
        crashed("redeem_confirmation"),
    ]
    for number in (1, 2):
        done = post(url, call_message("pass", {"number": number}), token=token)
        assert text(done) == f"Passed with {number}."


@pytest.mark.parametrize("what", LETHAL)
def test_what_would_end_a_process_undoes_a_shared_transaction_and_leaves_the_yes(
    url: str, token: str, gate: Gate, what: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(gated.PASS.__dict__, "one_transaction", True)
    gate.open.set()
    gate.ends = raising(what)
    ask(url, token, 1)
    message = call_message("pass", {"number": 1})
    failed, events = text(post(url, message, token=token)), kinds_of_events(row_of(1))
    gate.ends = lambda: None

    assert failed == crashed("pass")
    assert events == ["requested", "approve"]
    assert text(post(url, message, token=token)) == "Passed with 1."

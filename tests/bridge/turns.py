"""Calls of the tool that waits at a gate, and the one of them that has to wait for its turn."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from django.test import override_settings

from confirmhub.confirmations.models import Confirmation
from mcp_bridge import acting, threads
from tests.bridge.gated import Gate
from tests.bridge.hosts import call_message, decide_at, post

LAST = threads.ACTING  # the number of the first call that has to wait
WITH_THE_TOOL = override_settings(GUARDED_TOOLS=["tests.bridge.gated"])

type Answer = Future[httpx2.Response]


class Queue:
    """The call that has to wait for its turn, watched from outside."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.joined, self.over = threading.Event(), threading.Event()
        turn, redeem_and_act = acting.turn, acting.redeem_and_act

        async def watched_turn() -> threads.Turn:
            running = threads._running
            assert running
            if running.turns.locked():
                self.joined.set()
            return await turn()

        async def watched(call: acting.Call, *args: Any, **how: Any) -> acting.Done:
            try:
                return await redeem_and_act(call, *args, **how)
            finally:
                if call.arguments.number == LAST:
                    self.over.set()

        monkeypatch.setattr(acting, "LONG", 0.0)
        monkeypatch.setattr(acting, "turn", watched_turn)
        monkeypatch.setattr(acting, "redeem_and_act", watched)


def ask(url: str, token: str, number: int) -> str:
    """Ask for it and have it allowed; the confirmation's id."""
    asked = post(url, call_message("pass", {"number": number}), token=token).json()["result"]
    page: str = asked["structuredContent"]["page"]
    decide_at(page)
    return page.rpartition("/")[2]


def take_all_turns(url: str, token: str, gate: Gate, callers: ThreadPoolExecutor) -> list[Answer]:
    """As many calls as may act at once, all of them at the gate; and one more is allowed."""
    ids = [ask(url, token, number) for number in range(LAST + 1)]
    messages = [call_message("redeem_confirmation", {"confirmation_id": id_}) for id_ in ids[:LAST]]
    calls = [callers.submit(post, url, message, token=token) for message in messages]
    gate.wait_for(LAST)
    return calls


def crashed(tool: str) -> str:
    """What a model is told of a tool that ended as no tool should."""
    return (
        f"{tool} failed; the service's log has the cause. It may have been done or not: look with "
        "list_confirmations before you call again."
    )


def row_of(number: int) -> Confirmation:
    return Confirmation.objects.get(arguments=f'{{"number":{number}}}')


def last_call(**more: Any) -> dict[str, Any]:
    return call_message("pass", {"number": LAST}, **more)


def text(answer: httpx2.Response) -> str:
    return str(answer.json()["result"]["content"][0]["text"])

"""A request that is closed while a person is waited for: the question stays, for the next call to pick up."""

from __future__ import annotations

import datetime as dt
import threading
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from mcp_bridge import rounds
from tests.bridge.hosts import MODERN, call_message, decide_at, post, send_and_leave
from tests.factories import kinds_of_events

URL = {"url": {}}


class Hold:
    """The wait of a call, watched from outside."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.over = threading.Event(), threading.Event()
        hold = rounds.hold

        async def watched(*args: Any, **how: Any) -> Status:
            self.begun.set()
            try:
                return await hold(*args, **how)
            finally:
                self.over.set()

        monkeypatch.setattr(rounds, "hold", watched)
        # So long that only a call that is told ends before the test gives up.
        monkeypatch.setattr(rounds, "HOLD", dt.timedelta(minutes=2))


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Hold:
    return Hold(monkeypatch)


def waiting_calls(file: Path, first: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every call that waits, by a name."""
    identity = {"confirmation_id": str(Confirmation.objects.get().id)}
    path = {"path": str(file)}
    return {
        "round": call_message("delete_file", path, elicitation=URL, requestState=first["requestState"]),
        "again": call_message("delete_file", path),
        "redeem": call_message("redeem_confirmation", identity),
        "get": call_message("get_confirmation", identity | {"wait_seconds": 45}),
    }


@pytest.mark.parametrize("version", [MODERN, "2025-06-18"])
@pytest.mark.parametrize("call", ["round", "again", "redeem", "get"])
def test_a_call_whose_client_has_left_ends_and_spends_no_yes_that_comes_later(  # noqa: PLR0917 - all are needed
    url: str, token: str, file: Path, hold: Hold, call: str, version: str
) -> None:
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL)
    first = post(url, message, token=token).json()["result"]

    send_and_leave(url, waiting_calls(file, first)[call], token=token, when=hold.begun, version=version)
    assert hold.over.wait(timeout=20), "the call waits on for a client that has left"
    left = Confirmation.objects.get().status
    decide_at(first["inputRequests"]["page"]["params"]["url"])

    assert left == Status.PENDING
    assert kinds_of_events(Confirmation.objects.get()) == ["requested", "approve"]
    assert file.exists()
    done = post(url, waiting_calls(file, first)["round"], token=token).json()["result"]
    assert done["structuredContent"]["status"] == "done"
    assert not file.exists()


def test_a_client_that_stays_is_told_of_the_decision_at_once(
    url: str, token: str, file: Path, hold: Hold, alice: User
) -> None:
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL)
    first = post(url, message, token=token).json()["result"]
    page = first["inputRequests"]["page"]["params"]["url"]

    def decide() -> None:
        assert hold.begun.wait(timeout=20)
        try:
            decide_at(page)
        finally:
            connections.close_all()

    decider = threading.Thread(target=decide)
    decider.start()
    done = post(url, waiting_calls(file, first)["round"], token=token).json()["result"]
    decider.join()

    assert done["structuredContent"]["status"] == "done"

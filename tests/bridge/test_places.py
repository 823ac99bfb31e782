"""So many calls may wait at once, and so many of one caller: more are told how it stands, at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from mcp_bridge import rounds
from tests.bridge.hosts import call_message, decide_at, make_token, post
from tests.bridge.test_patience import waiting_calls
from tests.ops.service import wait_until

URL = {"url": {}}


@pytest.mark.parametrize("limit", ["MOST_OF_ONE", "MOST_WAITING"])
@pytest.mark.parametrize("call", ["round", "again", "redeem", "get"])
def test_a_call_that_finds_no_place_to_wait_is_told_at_once_that_it_is_pending(  # noqa: PLR0917 - all are needed
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch, call: str, limit: str
) -> None:
    asks = call_message("delete_file", {"path": str(file)}, elicitation=URL)
    first = post(url, asks, token=token).json()["result"]
    calls = waiting_calls(file, first)
    monkeypatch.setattr(rounds, limit, 0)

    told = post(url, calls[call], token=token).json()["result"]

    assert not told["isError"]
    assert told["structuredContent"]["status"] in ("waiting_for_person", "pending")
    assert Confirmation.objects.get().status == Status.PENDING


def test_a_yes_is_used_where_there_is_no_place_to_wait(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = post(url, call_message("delete_file", {"path": str(file)}), token=token).json()["result"]
    decide_at(first["structuredContent"]["page"])
    identity = {"confirmation_id": first["structuredContent"]["confirmation_id"]}
    monkeypatch.setattr(rounds, "MOST_WAITING", 0)

    done = post(url, call_message("redeem_confirmation", identity), token=token).json()["result"]

    assert done["structuredContent"]["status"] == "done"


def test_one_caller_takes_no_place_of_another(
    url: str, token: str, file: Path, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "MOST_OF_ONE", 1)
    message = call_message("delete_file", {"path": str(file)})
    pages, waits = [], []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for number, whose in enumerate((token, make_token(bob, resource=f"{url}/mcp")), start=1):
            asked = post(url, message, token=whose).json()["result"]["structuredContent"]
            pages.append(asked["page"])
            wait = {"confirmation_id": asked["confirmation_id"], "wait_seconds": 45}
            waits.append(pool.submit(post, url, call_message("get_confirmation", wait), token=whose))
            wait_until(lambda number=number: rounds._places.taken.total() == number)
        for page in pages:
            decide_at(page)
        told = [wait.result(20).json()["result"]["structuredContent"]["status"] for wait in waits]

    assert told == ["approved", "approved"]
    wait_until(lambda: not rounds._places.taken)

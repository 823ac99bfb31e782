"""A server that stops while all turns to act are taken. Each test has a server of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User

from confirmhub.ops import web
from tests.bridge.gated import PATIENCE, Gate
from tests.bridge.hosts import make_token, post
from tests.bridge.serving import served
from tests.bridge.turns import LAST, WITH_THE_TOOL, Queue, last_call, row_of, take_all_turns
from tests.factories import kinds_of_events


@pytest.mark.usefixtures("transactional_db")
def test_a_stop_lets_the_turns_end_and_keeps_the_yes_of_who_waits_for_one(
    alice: User, gate: Gate, queue: Queue, callers: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "GRACE", 0)
    with WITH_THE_TOOL, served() as url:
        token = make_token(alice, resource=f"{url}/mcp")
        calls = take_all_turns(url, token, gate, callers)
        last = callers.submit(post, url, last_call(), token=token)
        assert queue.joined.wait(PATIENCE)
        # The server is there for the others until they end.
        last.add_done_callback(lambda _: gate.open.set())
    refused, told = last.result(PATIENCE), [call.result(PATIENCE) for call in calls]

    assert refused.status_code == 503
    assert "look with get_confirmation before you call again" in refused.json()["error"]["message"]
    assert kinds_of_events(row_of(LAST)) == ["requested", "approve"]
    assert (gate.looks[LAST], gate.acts[LAST]) == (2, 0)
    # They are told that it may be done, and it is.
    assert {answer.status_code for answer in told} == {503}
    for number in range(LAST):
        assert kinds_of_events(row_of(number)) == ["requested", "approve", "redeemed", "succeeded"]

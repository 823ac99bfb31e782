"""A requester waits for the decision: how the wait ends, and who takes a place."""

from __future__ import annotations

import socket
import threading
import time
from urllib.parse import urlsplit

import httpx2
import pytest
from django.contrib.auth.models import User

from confirmhub.aap import routes
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Verdict
from confirmhub.oauth.models import AccessToken
from tests.aap.raw import Raw, refusal
from tests.factories import decide
from tests.notifications.support import eventually


def taken() -> int:
    return routes._running.places.taken.total() if routes._running else 0


def test_a_wait_ends_with_the_decision(raw: Raw, alice: User) -> None:
    made = raw.ask()
    id_ = made.json()["id"]
    answers: list[httpx2.Response] = []
    waiter = threading.Thread(target=lambda: answers.append(raw.get(id_, "?wait=30s")))
    began = time.monotonic()
    waiter.start()
    eventually(lambda: taken() == 1)
    decide(Confirmation.objects.get(id=id_), alice, Verdict.DENY)
    waiter.join()

    assert time.monotonic() - began < 10
    assert answers[0].json()["status"] == "denied"


def test_a_wait_ends_when_its_time_is_up(raw: Raw) -> None:
    waited = raw.get(raw.ask().json()["id"], "?wait=1s")

    assert (waited.status_code, waited.json()["status"]) == (200, "pending")


def test_who_waits_with_a_token_that_is_revoked_meanwhile_reads_nothing(raw: Raw) -> None:
    made = raw.ask()
    answers: list[httpx2.Response] = []
    path = f"{made.json()['id']}"
    waiter = threading.Thread(target=lambda: answers.append(raw.get(path, "?wait=2s")))
    waiter.start()
    eventually(lambda: taken() == 1)  # after the first look-up; the second comes when the wait is over
    AccessToken.objects.all().delete()
    waiter.join()

    assert refusal(answers[0]) == (401, "authentication", "invalid_credential")


def test_more_waiters_than_a_process_takes_are_sent_away(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MOST_WAITING", 0)

    answer = raw.get(raw.ask().json()["id"], "?wait=1s")

    assert refusal(answer) == (503, "dependency", "busy")
    assert answer.headers["Retry-After"] == "5"


def test_who_has_left_waits_no_more_and_nobody_takes_all_places(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_OF_ONE", 1)
    id_, at = raw.ask().json()["id"], urlsplit(raw.base)

    with socket.create_connection(("127.0.0.1", at.port or 80), timeout=20) as opened:
        line = f"GET {at.path}/v1/requests/{id_}?wait=30s HTTP/1.1\r\nHost: {at.netloc}\r\n"
        opened.sendall(f"{line}Authorization: Bearer {raw.token}\r\n\r\n".encode())
        eventually(lambda: taken() == 1)
        second = raw.get(id_, "?wait=1s")
    eventually(lambda: taken() == 0)

    assert refusal(second) == (429, "rate_limit", "too_many_requests")
    assert second.headers["Retry-After"] == "5"

"""A served hub, and a service that an operator has made there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status, Verdict
from confirmhub.oauth import services
from confirmhub_client import Hub
from tests.api.serving import AUDIENCE
from tests.factories import decide

type Credentials = dict[str, str]
type Decider = Callable[..., threading.Thread]


@pytest.fixture
def credentials(url: str) -> Credentials:
    made, secret = services.create(name="Payments", audience=AUDIENCE)
    return {"client_id": made.client_id, "client_secret": secret}


@pytest.fixture
def hub(url: str, credentials: Credentials) -> Iterator[Hub]:
    made = Hub(url, **credentials)
    yield made
    made.close()


@pytest.fixture
def decider(alice: User) -> Iterator[Decider]:
    """Let alice decide on the next question, whenever it comes."""
    threads = []

    def start(verdict: Verdict = Verdict.APPROVE, *, reason: str = "") -> threading.Thread:
        thread = threading.Thread(target=_decide_next, args=(alice, verdict, reason))
        threads.append(thread)
        thread.start()
        return thread

    yield start
    for thread in threads:
        thread.join(timeout=30)


def _decide_next(approver: User, verdict: Verdict, reason: str) -> None:
    try:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if waiting := Confirmation.objects.filter(status=Status.PENDING).first():
                decide(waiting, approver, verdict, reason=reason)
                return
            threading.Event().wait(0.02)
    finally:
        connection.close()

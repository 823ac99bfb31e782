"""A mail server that listens, and workers as the product runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.principals import Principal
from confirmhub.notifications import delivery
from tests.factories import make_user
from tests.notifications.receiver import Receiver, receiving
from tests.notifications.smtp import Sink
from tests.notifications.support import Start, database_url
from tests.oauth.sites import authority


@pytest.fixture(scope="module")
def running_sink() -> Iterator[Sink]:
    with Sink() as sink:
        yield sink


@pytest.fixture
def sink(running_sink: Sink) -> Sink:
    """The mail server, empty and friendly."""
    running_sink.answers.clear()
    running_sink.open.set()
    while not running_sink.received.empty():
        running_sink.received.get_nowait()
    return running_sink


@pytest.fixture(scope="session")
def running_receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with receiving(*authority(tmp_path_factory.mktemp("ca"))) as receiver:
        yield receiver


@pytest.fixture
def receiver(running_receiver: Receiver) -> Receiver:
    """A web server with TLS, empty and friendly."""
    return emptied(running_receiver)


@pytest.fixture(scope="session")
def running_plain_receiver() -> Iterator[Receiver]:
    with receiving(None, None) as receiver:
        yield receiver


@pytest.fixture
def plain_receiver(running_plain_receiver: Receiver) -> Receiver:
    """A web server without TLS, empty and friendly."""
    return emptied(running_plain_receiver)


def emptied(receiver: Receiver) -> Receiver:
    delivery.breaker.clear()
    receiver.answers.clear()
    while not receiver.received.empty():
        receiver.received.get_nowait()
    return receiver


@pytest.fixture(scope="module")
def start(
    django_db_setup: None, running_sink: Sink, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Start]:
    """Start `celery worker` or `celery beat` on the tests' database. They end with the module."""
    folder = tmp_path_factory.mktemp("celery")
    environment = os.environ | {
        "DATABASE_URL": database_url(),
        "EMAIL_HOST": "127.0.0.1",
        "EMAIL_PORT": str(running_sink.port),
        "WEBHOOKS_TO_LOOPBACK": "true",
    }
    environment.pop("EMAIL_FILE_PATH", None)
    running: list[subprocess.Popen[bytes]] = []

    def launch(command: str, **variables: str) -> subprocess.Popen[bytes]:
        log = folder / f"{command}-{len(running)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "confirmhub.celery", command, "-l", "INFO"],
                env=environment | variables,
                cwd=Path(__file__).parents[2],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        running.append(process)
        return process

    yield launch
    for process in running:
        process.send_signal(signal.SIGTERM)
    for process in running:
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture(scope="module")
def worker(start: Start) -> subprocess.Popen[bytes]:
    """A worker that serves every test of the module."""
    return start("worker")


@pytest.fixture
def alice(transactional_db: None) -> User:
    return make_user("alice")


@pytest.fixture
def agent(alice: User) -> Principal:
    """An agent that acts for Alice."""
    return Principal(client_id="agent-1", subject=str(alice.pk))

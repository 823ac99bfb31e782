"""What the tests of notices share."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import psycopg
from django.contrib.auth.models import User
from django.db import connection
from psycopg import sql

from confirmhub.confirmations import outbox
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.dsn import conninfo
from confirmhub.notifications import delivery, trials
from confirmhub.notifications import relay as relays
from confirmhub.notifications.channels.webhook import new_secret
from confirmhub.notifications.models import Destination
from confirmhub.notifications.tasks import TRY
from tests.notifications.receiver import Receiver
from tests.notifications.smtp import SOON

type Start = Callable[..., subprocess.Popen[bytes]]


def delete(path: str) -> Action:
    """The deletion of a file."""
    return Action(audience="http://localhost:8000/mcp", name="delete_file", arguments={"path": path})


DELETE = delete("/srv/demo/secret-plan.txt")


def work(receiver: Receiver) -> None:
    """Relay and run what is due, in this thread, until nothing is."""
    waiting: list[tuple[str, dict[str, Any]]] = []
    relay = relays.Relay(send=lambda *call: waiting.append(call), pulse=lambda: None)
    while relay.forward() or waiting:
        while waiting:
            task, kwargs = waiting.pop()
            if task == TRY:
                trials.send(slot=kwargs["slot"], post=receiver.post)
                outbox.mark_done(chore_id=kwargs["chore_id"])
            else:
                delivery.deliver(notice_ids=kwargs["notice_ids"], post=receiver.post)


def chooses(person: User, channel: str, address: str = "", **fields: Any) -> Destination:
    return Destination.objects.create(
        user=person, channel=channel, address=address, secrets=new_secret(), **fields
    )


@contextmanager
def hearing(channel: str) -> Iterator[Callable[[], str]]:
    """Listen on a Postgres channel; the value waits for its next payload."""
    with psycopg.connect(conninfo(), autocommit=True) as wire:
        wire.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))

        def heard() -> str:
            return next(wire.notifies(timeout=SOON)).payload

        yield heard


def eventually(true: Callable[[], bool], *, within: float = SOON) -> None:
    """Wait until another process has made something true in the database."""
    never = threading.Event()
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, "it did not become true in time"
        never.wait(0.05)


def database_url() -> str:
    """The URL of the database that the tests use, for a process that is started."""
    at = connection.settings_dict
    user = quote(str(at["USER"]), safe="") + (f":{quote(at['PASSWORD'], safe='')}" if at["PASSWORD"] else "")
    port = f":{at['PORT']}" if at["PORT"] else ""
    if str(at["HOST"]).startswith("/"):
        return f"postgresql://{user}@{port}/{at['NAME']}?host={quote(at['HOST'])}"
    return f"postgresql://{user}@{at['HOST']}{port}/{at['NAME']}"

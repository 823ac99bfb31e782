"""How soon a notice is with its mail server after the commit that it tells of.

    ./hub bench notices [--quick]

A hundred notices a second on one machine: questions are asked evenly, each of a group of five; beside them
run Postgres, one worker with the embedded broker, and a mail server that takes the mails. Each notice is
measured from the commit to the arrival of its mail, and to the moment from which the outbox says so.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from tests.bench import common
from tests.bench.common import Bar, percentile, say, tell

RATE = 100  # notices a second
APPROVERS = 5  # whom one question is asked
ASKERS = 4  # threads that ask
AGENTS = 20
BAR = 2.0  # seconds, at the 99th percentile
PATIENCE = 60.0  # seconds for the next one


def main() -> None:
    options = common.arguments(__doc__)
    seconds = 10 if options.quick else 60
    with common.database() as url, mail_server() as (port, arrivals), worker(url, port):
        agents = populate()
        ask(agents[:1], rate=5, seconds=1)  # the worker is up, and has read its templates
        drain(arrivals, number=5 * APPROVERS)
        marked_after()
        say(f"{RATE} notices a second for {seconds} s")
        began = time.monotonic()
        with ThreadPoolExecutor(1) as beside:
            # Read while they come, or the mail server would wait for us.
            reading = beside.submit(drain, arrivals, number=RATE * seconds)
            committed = ask(agents, rate=RATE // APPROVERS, seconds=seconds)
            rate = len(committed) * APPROVERS / (time.monotonic() - began)
            arrived = reading.result()
        marked = marked_after()[5 * APPROVERS :]
    delays = [at - committed[key] for key, _, at in arrived]
    arriving = spread(delays)
    tell("arrived, s", arriving)
    tell("marked, s", spread(marked))
    common.conclude(
        Bar("commit to mail, p99", arriving["p99"], BAR, "s"),
        Bar("notices a second", round(rate), 0.95 * RATE, at_least=True),
        notices=len(delays),
        rate=round(rate),
        **arriving,
        marked_p99=spread(marked)["p99"],
    )


def spread(seconds: list[float]) -> dict[str, float]:
    shares = {f"p{share}": round(percentile(seconds, share), 3) for share in (50, 95, 99)}
    return shares | {"most": round(max(seconds), 3)}


def populate() -> list[Any]:
    """Agents, the group that their questions go to, and room for all of them."""
    from django.contrib.auth.models import Group, User

    from confirmhub.confirmations.models import Rule
    from confirmhub.confirmations.principals import Principal

    group = Group.objects.create(name="bench")
    for number in range(APPROVERS):
        User.objects.create_user(f"approver{number}", f"approver{number}@example.org").groups.add(group)
    Rule.objects.create(
        name="room", rank=1, mode="approve", approver_group=group, max_open=10**6, max_waiting=10**6
    )
    users = [User.objects.create_user(f"user{number}") for number in range(AGENTS)]
    return [Principal("https://agent.example/client.json", str(user.pk)) for user in users]


def ask(agents: list[Any], *, rate: int, seconds: int) -> dict[str, float]:
    """Ask evenly; return when each was committed, by its id."""
    from django.db import connection

    from confirmhub.confirmations import ledger
    from confirmhub.confirmations.actions import Action

    committed: dict[str, float] = {}
    begin = time.monotonic() + 0.1

    def some(first: int) -> None:
        for number in range(first, rate * seconds, ASKERS):
            time.sleep(max(0.0, begin + number / rate - time.monotonic()))
            action = Action("https://bank.example", "pay", {"number": f"{begin} {number}"})
            asked = ledger.request(requester=agents[number % len(agents)], action=action)
            committed[str(asked.id)] = time.time()
        connection.close()

    askers = [threading.Thread(target=some, args=(first,)) for first in range(ASKERS)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    return committed


def drain(arrivals: Connection, *, number: int) -> list[tuple[str, str, float]]:
    """So many mails: the confirmation's id, the notice's, and when it arrived."""
    found: dict[str, tuple[str, str, float]] = {}
    while len(found) < number:
        assert arrivals.poll(PATIENCE), f"{len(found)} of {number} arrived"
        message_id, at = arrivals.recv()
        confirmation, _, notice = message_id.strip("<>").partition("@")[0].partition(".")
        found.setdefault(notice, (confirmation, notice, at))
    return list(found.values())


def marked_after() -> list[float]:
    """How long after its transaction began each notice was marked as sent, in seconds."""
    from confirmhub.confirmations.models import Notice

    ends = time.monotonic() + PATIENCE
    while Notice.objects.filter(sent_at=None).exists():
        assert time.monotonic() < ends, "some notices were never marked"
        time.sleep(0.1)
    rows = Notice.objects.order_by("id").values_list("created_at", "sent_at")
    return [(sent - created).total_seconds() for created, sent in rows if sent is not None]


@contextmanager
def mail_server() -> Iterator[tuple[int, Connection]]:
    """A mail server in a process of its own; the connection gives each mail's id and the time."""
    here, there = multiprocessing.Pipe(duplex=False)
    ports, port_there = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=serve_mail, args=(there, port_there), daemon=True)
    process.start()
    yield ports.recv(), here
    process.terminate()
    process.join()


def serve_mail(arrivals: Connection, port: Connection) -> None:
    from tests.notifications.smtp import Sink

    class Bench(Sink):
        def took(self, message_id: str) -> None:
            arrivals.send((message_id, time.time()))

    with Bench() as sink:
        port.send(sink.port)
        threading.Event().wait()


@contextmanager
def worker(url: str, port: int) -> Iterator[None]:
    """A Celery worker as `up` starts one."""
    environment = os.environ | {"DATABASE_URL": url, "EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(port)}
    for name in ("EMAIL_FILE_PATH", "CELERY_BROKER_URL"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "celery", "-A", "confirmhub.celery", "--quiet", "worker"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, cwd=common.ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            process.kill()  # what it holds is nobody's concern any more
            process.wait()


if __name__ == "__main__":
    main()

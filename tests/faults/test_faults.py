"""Processes race to spend the same confirmations while some are killed and Postgres goes away under them.

A short run by default; `--long` for the long one.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import pytest_django
from django.db import connection, connections

from confirmhub.confirmations import audit, evidence
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.ops.postgres import OWNER, Cluster
from tests.factories import make_user
from tests.invariants import proves

ROOT = Path(__file__).resolve().parent.parent.parent
WORKERS = 4
CLIENT = "https://agent.example/client.json"


@pytest.fixture
def cluster(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: pytest_django.DjangoDbBlocker
) -> Iterator[Cluster]:
    """A Postgres of this test's own that syncs to disk, and Django on it, for as long as the test runs."""
    folder = tmp_path_factory.mktemp("faults")
    found = Cluster(folder / "pg", log=folder / "log")
    found.start()
    settings = connection.settings_dict
    before = dict(settings)
    connection.close()
    settings.update(NAME="confirmhub", USER=OWNER, PASSWORD="", HOST=str(found.socket.parent), PORT="")
    try:
        with django_db_blocker.unblock():
            yield found
            connection.close()
    finally:
        found.stop(at_once=True)
        settings.clear()
        settings.update(before)


@proves("redeem:once")
@proves("decide:kept")
@proves("log:chained")
def test_no_yes_is_spent_twice_and_no_decision_is_lost_whatever_dies(
    cluster: Cluster, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    number = 40_000 if pytestconfig.getoption("--long") else 600
    environment = os.environ | {"DATABASE_URL": cluster.url(OWNER)}
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=ROOT, env=environment, check=True, timeout=120)
    alice = make_user("alice")
    Rule.objects.create(name="room", rank=1, mode="confirm", max_open=10**6, max_waiting=10**6)
    connections.close_all()

    def start(worker: int, life: int) -> subprocess.Popen[bytes]:
        # Each confirmation is raced for by two of the four.
        half = number // 2
        first, last = (0, half) if worker % 2 else (half, number)
        arguments = [tmp_path / f"{worker}.{life}", CLIENT, alice.pk, first, last, worker]
        command = [sys.executable, "-m", "tests.faults.worker", *map(str, arguments)]
        return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)

    lives = Counter(range(WORKERS))
    running = {worker: start(worker, 0) for worker in range(WORKERS)}
    fate = random.Random(4711)
    fates = [cluster.stop, lambda: cluster.stop(at_once=True), None, None]
    happened = Counter()
    step = number // 8
    for quota in range(step, number, step):
        wait_until(lambda quota=quota: answers(tmp_path, "receipt") > quota or not alive(running), within=600)
        if not alive(running):
            break
        blow = fates[happened.total() % len(fates)]
        if blow is not None:
            blow()
            cluster.start()
            happened["postgres"] += 1
        else:
            worker = fate.choice([worker for worker, process in running.items() if process.poll() is None])
            running[worker].kill()
            running[worker].wait()
            lives[worker] += 1
            running[worker] = start(worker, lives[worker])
            happened["killed"] += 1
    for process in running.values():
        assert process.wait(timeout=600) == 0

    assert happened["postgres"] >= 2
    assert happened["killed"] >= 2
    assert_that_it_all_holds(tmp_path, number)


def assert_that_it_all_holds(folder: Path, number: int) -> None:
    rows = {str(row.id): row for row in Confirmation.objects.prefetch_related("decisions")}
    receipts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for line in (line.split() for file in folder.iterdir() for line in file.read_text().splitlines()):
        match line:
            case ["decided", id_, verdict]:
                assert [decision.verdict for decision in rows[id_].decisions.all()] == [verdict]
            case ["receipt", id_, key, kind]:
                assert rows[id_].redemption_key == key
                receipts[id_].append((key, kind))
            case ["refused", id_, code]:
                assert rows[id_].status == {"already_redeemed": "redeemed", "denied": "denied"}[code]
    assert len(rows) == number
    assert Counter(row.status for row in rows.values()) == {
        "redeemed": number * 9 // 10,
        "denied": number // 10,
    }
    # At most one answer that lets its holder act, and at most one key.
    for given in receipts.values():
        assert len({key for key, _ in given}) == 1
        assert [kind for _, kind in given].count("new") <= 1
    while audit.seal(limit=5_000):
        pass
    with audit.records() as records:
        assert evidence.check(records).confirmations == number


def alive(running: dict[int, subprocess.Popen[bytes]]) -> bool:
    return any(process.poll() is None for process in running.values())


def answers(folder: Path, word: str) -> int:
    return sum(file.read_bytes().count(word.encode()) for file in folder.iterdir())


def wait_until(true: Callable[[], bool], *, within: float) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)

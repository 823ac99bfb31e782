"""Many hosts at once, each call sent twice, and a replica that is killed among them."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from confirmhub.confirmations.models import Confirmation, Decision, Event
from tests.bridge.hosts import decide_at, make_token
from tests.factories import make_user
from tests.invariants import proves
from tests.replicas.conftest import trusting
from tests.replicas.hosts import Host, again
from tests.replicas.serving import Balanced

HOSTS, CALLS = 16, 8
KILL_AFTER = 30  # calls that are done


class Fleet:
    """What the hosts were told, of each call by its number."""

    def __init__(self) -> None:
        self.pages: dict[int, str] = {}
        self.told: dict[int, list[str]] = {}
        self.by: dict[int, set[str]] = {}
        self.calls_done = threading.Semaphore(0)

    def run(self, cluster: Balanced, token: str, first: int) -> None:
        """One host, which makes its calls one after the other, each with a twin that races it."""
        trust = trusting(cluster)
        try:
            with (
                Host(cluster.url, token, trust=trust) as host,
                Host(cluster.url, token, trust=trust) as twin,
                ThreadPoolExecutor(max_workers=1) as beside,
            ):
                for number in range(first, first + CALLS):
                    state, page = host.ask(number)
                    decide_at(page)
                    other = beside.submit(twin.call, again(number, state))
                    results = [host.call(again(number, state)), other.result()]
                    self.pages[number] = page.rpartition("/")[2]
                    self.told[number] = [_told(result) for result in results]
                    self.by[number] = {host.replicas[-1], twin.replicas[-1]}
                    self.calls_done.release()
        finally:
            connections.close_all()


def _told(result: dict[str, Any]) -> str:
    text = result["content"][0]["text"]
    if not result["isError"]:
        return "done before" if result["structuredContent"]["replayed"] else "done"
    return "spent" if "was already redeemed" in text else "unknown" if "was cut off" in text else text


@proves("redeem:once")
@pytest.mark.usefixtures("transactional_db")
def test_under_load_each_yes_is_spent_and_acted_on_once_though_a_replica_is_killed(
    cluster: Balanced,
) -> None:
    before = len(cluster.acts())
    people = [make_user(f"person-{number}") for number in range(HOSTS)]
    tokens = [make_token(person, resource=f"{cluster.url}/mcp") for person in people]
    fleet = Fleet()
    with ThreadPoolExecutor(max_workers=HOSTS) as pool:
        running = [
            pool.submit(fleet.run, cluster, token, number * CALLS) for number, token in enumerate(tokens)
        ]
        for _ in range(KILL_AFTER):
            assert fleet.calls_done.acquire(timeout=60)
        cluster.replicas[0].kill()
        for each in running:
            each.result()

    made = HOSTS * CALLS
    rows = {str(row.id): row for row in Confirmation.objects.select_related("outcome")}
    acts = Counter(cluster.acts()[before:])
    assert len(rows) == made
    assert Decision.objects.count() == made
    assert set(Decision.objects.values_list("verdict", flat=True)) == {"approve"}
    assert Event.objects.filter(kind="redeemed").count() == made
    assert max(acts.values()) == 1

    cut_off = {key for key, row in rows.items() if not hasattr(row, "outcome")}
    # The killed one had at most both calls of each host in its hands; what those did nobody can know.
    assert len(cut_off) <= HOSTS
    assert set(acts) >= rows.keys() - cut_off
    for number, told in fleet.told.items():
        if fleet.pages[number] in cut_off:
            assert "done" not in told, (number, told)
        else:
            assert told.count("done") + told.count("done before") == 1, (number, told)
            assert set(told) <= {"done", "done before", "spent"}, (number, told)
    assert len({replica for by in fleet.by.values() for replica in by}) == 3
    assert any(len(by) == 2 for by in fleet.by.values())

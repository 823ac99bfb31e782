"""Two instances that one host reaches in turns, with no session: any of them serves any request."""

from __future__ import annotations

import subprocess
from pathlib import Path

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from tests.hosts import nodes
from tests.replicas.serving import Balanced

PROGRAM = Path(__file__).parent / "instances.mjs"


def test_a_host_of_the_official_sdk_works_over_two_instances_in_turns(cluster: Balanced, token: str) -> None:
    name = cluster.url.removeprefix("https://")
    pool = [replica.address for replica in cluster.replicas[-2:]]
    run = subprocess.run(
        [*nodes.program(PROGRAM), name, token, *pool], capture_output=True, text=True, timeout=60, check=False
    )

    assert run.stdout.splitlines() == [
        "initialize -> instance-1: 200",
        "notifications/initialized -> instance-2: 202",
        "tools/call -> instance-1: 200",
        "result: pending",
        "tools/call -> instance-2: 200",
        'result: pending {"room":"huddle-2"}',
        "tools/call -> instance-1: 200",
        "result: The question was taken back.",
    ], run.stderr
    assert Confirmation.objects.get().status == Status.CANCELLED

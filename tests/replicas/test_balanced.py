"""A host whose every request lands on another replica, behind nginx as the operators' guide sets it up."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from confirmhub.confirmations.models import Confirmation
from confirmhub.oauth import throttle
from confirmhub.oauth.views import REFUSALS
from confirmhub.ops.checked import MISCONFIGURED
from confirmhub.ops.web import MAX_DESCRIPTORS
from tests.bridge.hosts import decide_at
from tests.factories import kinds_of_events
from tests.invariants import proves
from tests.replicas.conftest import trusting
from tests.replicas.hosts import Host, again
from tests.replicas.serving import FEW_DESCRIPTORS, ROOT, Balanced


@proves("redeem:once")
def test_a_yes_is_spent_once_where_each_request_lands_on_another_replica(
    cluster: Balanced, host: Host
) -> None:
    before = len(cluster.acts())
    state, page = host.ask(1)
    decide_at(page)
    message = again(1, state)
    done = host.call(message)
    replay = host.call(message)
    another = host.call(again(1, state))

    assert done["structuredContent"]["status"] == "done"
    assert replay["structuredContent"]["replayed"]
    assert "was already redeemed" in another["content"][0]["text"]
    assert cluster.acts()[before:] == [str(Confirmation.objects.get().id)]
    assert kinds_of_events(Confirmation.objects.get())[:4] == [
        "requested",
        "approve",
        "redeemed",
        "succeeded",
    ]
    pairs = list(zip(host.replicas, host.replicas[1:], strict=False))
    assert all(one != next_one for one, next_one in pairs), host.replicas


@pytest.mark.usefixtures("transactional_db")
def test_a_page_knows_that_it_was_asked_for_by_tls_whatever_the_browser_says(cluster: Balanced) -> None:
    forged = {"X-Forwarded-Proto": "http"}
    answer = httpx2.get(
        f"{cluster.url}/.well-known/oauth-authorization-server", headers=forged, verify=trusting(cluster)
    )

    assert answer.json()["issuer"] == cluster.url
    # Django sends it over TLS alone.
    assert answer.headers["strict-transport-security"].startswith("max-age=")


def test_no_client_chooses_what_the_log_names_its_request_by(cluster: Balanced) -> None:
    forged = {"X-Request-Id": "of-somebody-else"}
    answer = httpx2.get(f"{cluster.url}/livez", headers=forged, verify=trusting(cluster))

    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["x-request-id"])


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere this machine has one loopback address")
def test_refusals_are_counted_by_the_address_that_they_come_from(cluster: Balanced) -> None:
    way = httpx2.HTTPTransport(local_address="127.0.0.9", verify=trusting(cluster))
    with httpx2.Client(transport=way, headers={"X-Forwarded-For": "192.0.2.1"}) as client:
        client.post(f"{cluster.url}/oauth/token")

    one = replace(REFUSALS, count=1)
    counted = [throttle.wait(one, who=f"127.0.0.{last}") > 0 for last in (9, 1)]
    assert counted == [True, False]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_replica_may_hold_more_connections_than_its_shell_allowed(cluster: Balanced) -> None:
    limits = Path(f"/proc/{cluster.replicas[-1].process.pid}/limits").read_text()
    soft, hard = next(line for line in limits.splitlines() if "open files" in line).split()[3:5]

    assert FEW_DESCRIPTORS < int(soft) == min(int(hard), MAX_DESCRIPTORS)


@pytest.mark.parametrize("where", ["localhost", "127.0.0.1:", "127.0.0.1:99999", "192.0.2.1:8001", "[::1"])
def test_an_address_that_cannot_be_listened_on_is_told_in_one_line(where: str) -> None:
    command = [sys.executable, "-m", "confirmhub.ops.web", where]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert run.returncode == MISCONFIGURED
    assert run.stderr.splitlines() == [
        f"{where} cannot be listened on: give a free address of this machine, such as 127.0.0.1:8001."
    ]

"""Two replicas of somebody's MCP server behind nginx: with the hub's ledger a yes is good once, anywhere."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Mode
from confirmhub_client import Hub, Refused, Rejected, SingleUse
from tests.bridge.hosts import call_message, post
from tests.client.conftest import Credentials
from tests.confirmations.test_rules import make_rule
from tests.ops.service import free_port, wait_until
from tests.replicas.serving import AROUND, NGINX, no_nginx

ROOT = Path(__file__).parent.parent.parent
FORM = {"form": {}}

TURNS = """
upstream payments {{ server 127.0.0.1:{0}; server 127.0.0.1:{1}; }}
server {{
    listen 127.0.0.1:{2};
    location / {{ proxy_pass http://payments; proxy_set_header Host $http_host; }}
}}
"""


@dataclass
class Payments:
    """The server, as its clients see it."""

    url: str
    paid: Path

    def ask(self) -> str:
        """The state that the host carries while its person reads the question."""
        answer = post(self.url, call_message("pay", {"cents": 5}, elicitation=FORM))
        return str(answer.json()["result"]["requestState"])

    def say_yes(self, state: str) -> str:
        """What the host is told when it comes back with the person's yes."""
        yes = {"yes": {"action": "accept", "content": {"yes": True}}}
        message = call_message("pay", {"cents": 5}, elicitation=FORM, requestState=state, inputResponses=yes)
        return str(post(self.url, message).json()["result"]["content"][0]["text"])


@contextlib.contextmanager
def replicas(ledger: str, folder: Path, **environment: str) -> Iterator[Payments]:
    """Two processes that share their sealing key, taking turns behind nginx."""
    if NGINX is None:
        no_nginx()
    folder.mkdir()
    paid = folder / "paid"
    paid.touch()
    ports = [free_port() for _ in range(3)]
    (folder / "confirmhub.conf").write_text(TURNS.format(*ports))
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder))
    env = (
        os.environ
        | {"SHARED_KEY": secrets.token_hex(32), "PYTHONPATH": "confirmhub_client/src"}
        | environment
    )
    command = [sys.executable, "-m", "tests.client.payments", ledger]
    started: list[subprocess.Popen[Any]] = [
        subprocess.Popen([*command, str(port), str(paid)], cwd=ROOT, env=env) for port in ports[:2]
    ]
    started.append(subprocess.Popen([str(NGINX), "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"]))
    try:
        for port in ports:
            wait_until(lambda port=port: listens(port))
        yield Payments(f"http://127.0.0.1:{ports[2]}", paid)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def allowed(db: None) -> None:
    """An operator's rule: states of this service need no person of the hub's; the host asks its own."""
    make_rule(Mode.ALLOW, action_pattern="mcp.single-use", name="single use")


def test_a_yes_is_good_once_on_any_replica_where_the_ledger_in_memory_refuses_it(
    allowed: None, url: str, credentials: Credentials, tmp_path: Path
) -> None:
    with replicas("memory", tmp_path / "memory") as payments:
        # nginx takes turns: the yes comes to the replica that did not ask, and knows of nothing.
        refused = payments.say_yes(payments.ask())
        assert "issued by a different server process" in refused  # so it came to the sibling
        assert payments.paid.read_text() == ""

    of_hub = {
        "CONFIRMHUB_URL": url,
        "CONFIRMHUB_CLIENT_ID": credentials["client_id"],
        "CONFIRMHUB_CLIENT_SECRET": credentials["client_secret"],
    }
    with replicas("hub", tmp_path / "hub", **of_hub) as payments:
        state = payments.ask()
        assert payments.say_yes(state) == "Paid."
        assert "already redeemed" in payments.say_yes(state)
        at_once = payments.ask()
        with ThreadPoolExecutor(10) as pool:
            said = list(pool.map(payments.say_yes, [at_once] * 10))
        assert said.count("Paid.") == 1, said
        assert payments.paid.read_text() == "5\n5\n"

    assert Confirmation.objects.filter(outcome__result="succeeded").count() == 2


@pytest.fixture
def ledger(allowed: None, hub: Hub) -> SingleUse:
    return SingleUse(hub=hub)


def test_a_state_is_spent_once(ledger: SingleUse) -> None:
    state = ledger.issue()

    ledger.spend(state)

    with pytest.raises(Rejected, match="already redeemed"):
        ledger.spend(state)


@pytest.mark.parametrize("change", ["", "x", "{state}x", "{id}.other", "{id}", "../confirmations.x"])
def test_a_state_that_was_not_issued_is_rejected(ledger: SingleUse, change: str) -> None:
    state = ledger.issue()

    with pytest.raises(Rejected):
        ledger.spend(change.format(state=state, id=state.partition(".")[0]))
    ledger.spend(state)


def test_a_state_is_too_old_after_its_time(allowed: None, hub: Hub) -> None:
    ledger = SingleUse(ttl_seconds=0, hub=hub)
    state = ledger.issue()

    with pytest.raises(Rejected, match="expired"):
        ledger.spend(state)
    with pytest.raises(Rejected, match="already redeemed"):
        ledger.spend(state)


def test_without_the_operators_rule_nothing_is_issued_and_the_error_says_what_to_do(
    hub: Hub, alice: User
) -> None:
    with pytest.raises(Refused, match="could decide"):
        SingleUse(hub=hub).issue()
    assert not Confirmation.objects.filter(status="pending").exists()

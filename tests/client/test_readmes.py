"""What the READMEs show of the client and of HTTP, run as it is printed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import ElicitResult

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Mode, Status, Verdict
from tests.client.conftest import Credentials, Decider
from tests.confirmations.test_rules import make_rule

ROOT = Path(__file__).parent.parent.parent
READMES = ["README.md", "confirmhub_client/README.md"]


def block(readme: str, *, language: str, holding: str) -> str:
    text = (ROOT / readme).read_text(encoding="utf-8")
    found = [code for code in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) if holding in code]
    assert len(found) == 1
    return str(found[0])


def run(code: str, given: dict[str, Any]) -> None:
    exec(code, given)
    given["hub"].close()


@pytest.fixture
def names(url: str, credentials: Credentials) -> dict[str, str]:
    """What the READMEs take for given."""
    return {"HUB": url} | {name.upper(): value for name, value in credentials.items()}


def test_the_curl_example_works_as_printed(names: dict[str, str], decider: Decider) -> None:
    decider()

    script = block("README.md", language="sh", holding="curl")
    ran = subprocess.run(
        ["bash", "-euc", script],
        env=os.environ | names,
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )

    waited, redeemed, reported = map(json.loads, ran.stdout.splitlines())
    assert (waited["status"], redeemed["replayed"]) == ("approved", False)
    assert reported["outcome"]["result"] == "succeeded"
    assert Confirmation.objects.get().redemption_key == "job-7"


@pytest.mark.parametrize("readme", READMES)
def test_the_python_example_works_as_printed(readme: str, names: dict[str, str], decider: Decider) -> None:
    decider()
    done: list[dict[str, Any]] = []

    run(
        block(readme, language="python", holding="hub.confirm"),
        {"transfer": lambda **given: done.append(given), **names},
    )

    row = Confirmation.objects.get()
    assert done == [{"to": "rent", "cents": 1250, "idempotency_key": str(row.id)}]
    assert row.outcome.result == "succeeded"


@pytest.mark.parametrize("readme", READMES)
@pytest.mark.parametrize("reason", ["Not this month", ""])
def test_the_python_example_says_when_the_answer_was_no(
    readme: str, reason: str, names: dict[str, str], decider: Decider, capsys: pytest.CaptureFixture[str]
) -> None:
    decider(Verdict.DENY, reason=reason)

    run(block(readme, language="python", holding="hub.confirm"), {"transfer": pytest.fail, **names})

    said = reason or "nobody gave a reason"
    assert f"The answer was no: {said}\n" in capsys.readouterr().out


def test_the_server_of_the_readme_spends_each_yes_once(
    names: dict[str, str], monkeypatch: pytest.MonkeyPatch, alice: User
) -> None:
    make_rule(Mode.ALLOW, action_pattern="mcp.single-use", name="single use")
    monkeypatch.setenv("CONFIRMHUB_URL", names["HUB"])
    monkeypatch.setenv("CONFIRMHUB_CLIENT_ID", names["CLIENT_ID"])
    monkeypatch.setenv("CONFIRMHUB_CLIENT_SECRET", names["CLIENT_SECRET"])
    made: dict[str, Any] = {"SHARED_KEY": secrets.token_hex(32)}
    exec(block(READMES[1], language="python", holding="SingleUseLedger"), made)
    with made["ledger"]._hub:
        assert asyncio.run(pay(made["server"])) == "Paid 5 cents."
    assert Confirmation.objects.get().status == Status.REDEEMED


async def yes(_context: Any, _params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"yes": True})


async def pay(server: MCPServer) -> str:
    async with Client(server, elicitation_callback=yes) as client:
        result = await client.call_tool("pay", {"cents": 5})
        [said] = result.content
        assert said.type == "text"
        return said.text

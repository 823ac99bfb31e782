"""Other packages bring guarded tools by setting, and write only what is theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from tests.bridge.hosts import call_message, decide_at, make_token, post
from tests.bridge.serving import BALANCER, replica
from tests.factories import kinds_of_events

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PAYMENT = {"to": "DE89370400440532013000", "cents": 1250}


@pytest.fixture
def address(root: Any, transactional_db: None) -> Iterator[str]:
    """A server that has the module of another package among its tools."""
    keys = ["a-sealing-key-" * 3]
    with replica(keys=keys, root=root, tools="mcp_bridge.tools.files,tests.bridge.payments") as found:
        yield found


def test_a_tool_of_another_package_is_guarded_like_ours(address: str, alice: User) -> None:
    token = make_token(alice, resource=f"http://{BALANCER}/mcp")

    def pay(**arguments: Any) -> dict[str, Any]:
        answer = post(address, call_message("pay", arguments), token=token, headers={"host": BALANCER})
        found: dict[str, Any] = answer.json()["result"]
        return found

    too_much = pay(to=PAYMENT["to"], cents=100_001)
    no_account = pay(to="x", cents=1)
    asked = pay(**PAYMENT)
    decide_at(asked["structuredContent"]["page"])
    done = pay(**PAYMENT)

    confirmation = Confirmation.objects.get()
    assert "At most 100000 cents can be paid at once." in too_much["content"][0]["text"]
    assert no_account["isError"]
    assert "Make this payment?\n  Amount: 12.50 EUR\n" in asked["content"][0]["text"]
    assert done["content"][0]["text"] == (
        f"Paid 1250 cents to DE89370400440532013000, reference {confirmation.id}."
    )
    assert kinds_of_events(confirmation) == ["requested", "approve", "redeemed", "succeeded"]


def test_the_example_of_the_page_for_authors_runs_as_it_stands(
    transactional_db: None, root: Path, tmp_path: Path, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (DOCS / "tool-authors.md").read_text(), re.DOTALL)
    (tmp_path / "my_tools.py").write_text(example)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    token = make_token(alice, resource=f"http://{BALANCER}/mcp")

    with replica(keys=["a-sealing-key-" * 3], root=root, tools="my_tools") as address:

        def transfer(**arguments: Any) -> dict[str, Any]:
            message = call_message("transfer", arguments)
            found: dict[str, Any] = post(address, message, token=token, headers={"host": BALANCER}).json()[
                "result"
            ]
            return found

        too_much = transfer(to="rent", cents=100_001)
        first, second = transfer(to="rent", cents=60_000), transfer(to="rent", cents=50_000)
        for asked in (first, second):
            decide_at(asked["structuredContent"]["page"])
        done = transfer(to="rent", cents=60_000)
        changed = transfer(to="rent", cents=50_000)

    assert "too little on the shared one" in too_much["content"][0]["text"]
    assert "Pay from the shared account?\n" in first["content"][0]["text"]
    assert "Balance: 100000 cents" in first["content"][0]["text"]
    assert done["content"][0]["text"] == "Paid 60000 cents to rent."
    assert changed["isError"]

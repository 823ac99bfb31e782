"""Other packages bring guarded tools by setting, and write only what is theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from tests.bridge.hosts import call_message, decide_at, make_token, post
from tests.bridge.serving import BALANCER, replica
from tests.factories import kinds_of_events

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

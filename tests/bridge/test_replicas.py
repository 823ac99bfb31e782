"""Several processes behind one address: a host may land on another one at each request."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User

from tests.bridge.hosts import call_message, decide_at, make_token, post
from tests.bridge.serving import BALANCER, replica

URL = {"url": {}}
OLD, NEW = "the-old-key-" * 3, "the-new-key-" * 3


@pytest.mark.usefixtures("transactional_db")
def test_a_state_opens_on_another_replica_and_through_a_change_of_keys(
    root: Path, file: Path, alice: User
) -> None:
    token = make_token(alice, resource=f"http://{BALANCER}/mcp")

    def at(address: str, **more: Any) -> httpx2.Response:
        message = call_message("delete_file", {"path": str(file)}, elicitation=URL, **more)
        return post(address, message, token=token, headers={"host": BALANCER})

    with contextlib.ExitStack() as stack:
        before, during, after = (
            stack.enter_context(replica(keys=keys, root=root)) for keys in ([OLD, NEW], [NEW, OLD], [NEW])
        )
        result = at(before).json()["result"]
        state = result["requestState"]
        decide_at(result["inputRequests"]["page"]["params"]["url"])
        refused = at(after, requestState=state)  # the old key has left there
        accepted = at(during, requestState=state)
        again = at(before, requestState=state)

    assert refused.json()["error"]["data"] == {"reason": "invalid_request_state"}
    assert accepted.json()["result"]["structuredContent"]["status"] == "done"
    assert "was already redeemed" in again.json()["result"]["content"][0]["text"]
    assert not file.exists()

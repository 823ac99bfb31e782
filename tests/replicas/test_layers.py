"""Which layer refuses what: the SDK's boundary what a state is bound to, and ours what it cannot know.

A JSON-RPC error of the boundary means that it refused before our code ran; a result with isError means that
ours did. What each line of that table says is shown over HTTP:

    the boundary, tool and method   bridge/test_once.py: no other tool's state, no other method's state
    the boundary, arguments         bridge/test_once.py: a state for one file is refused for another
    the boundary, principal         bridge/test_once.py: a state of another user, of another client
    the boundary, seal and key      bridge/test_once.py: forged, tampered; bridge/test_replicas.py: key gone
    the boundary, audience, time    here
    ours, never twice               bridge/test_once.py: the same state again; here, on another replica
    ours, the question is clean     bridge/test_asking.py, test_sinks_hostile.py
    ours, the target as it is now   bridge/test_drift.py
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from mcp.server import request_state as sdk

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from tests.bridge.hosts import decide_at
from tests.replicas.hosts import Host, again
from tests.replicas.serving import Balanced

REFUSED = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


def resealed(state: str, **changes: Any) -> str:
    """The state with other claims, under the replicas' own key: only what it says can be wrong with it."""
    codec = sdk.AESGCMRequestStateCodec(os.environ["SEALING_KEYS"].split())
    return codec.seal(json.dumps(json.loads(codec.unseal(state)) | changes).encode())


@pytest.fixture
def approved(host: Host) -> str:
    """The state of a call that its person has allowed."""
    state, page = host.ask(7)
    decide_at(page)
    return state


CLAIMS: dict[str, Callable[[], dict[str, Any]]] = {
    "of-another-audience": lambda: {"aud": "https://other.example/mcp"},
    "of-no-audience": lambda: {"aud": None},
    "past-its-time": lambda: {"exp": time.time() - 1},
    "from-the-future": lambda: {"iat": time.time() + 3600},
    "of-nobody": lambda: {"p": None},
}


@pytest.mark.parametrize("claims", CLAIMS)
def test_what_a_state_is_bound_to_is_the_boundarys_to_refuse(
    cluster: Balanced, host: Host, approved: str, claims: str
) -> None:
    before = cluster.acts()
    answer = host.send(again(7, resealed(approved, **CLAIMS[claims]())))

    assert (answer.status_code, answer.json()["error"]) == (400, REFUSED)
    assert Confirmation.objects.get().status == Status.APPROVED
    assert cluster.acts() == before


def test_that_it_was_spent_is_ours_to_refuse_and_the_boundary_lets_it_through(
    cluster: Balanced, host: Host, approved: str
) -> None:
    host.call(again(7, resealed(approved)))  # sealed anew it is as good as the first
    answer = host.send(again(7, approved))

    assert answer.status_code == 200
    assert answer.json()["result"]["isError"]
    assert cluster.acts().count(str(Confirmation.objects.get().id)) == 1

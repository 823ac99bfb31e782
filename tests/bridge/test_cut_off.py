"""A server that is killed in the middle of a deletion: what is true then is what all tools say."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from confirmhub.confirmations import ledger
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Result
from tests.bridge.hosts import call_message, decide_at, make_token, post
from tests.bridge.serving import BALANCER, replica
from tests.confirmations.clock import make_overdue
from tests.factories import kinds_of_events, make_user

KEYS = ["a-sealing-key-" * 3]


class Agent:
    """Calls the tools of whichever process serves now."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        message, headers = call_message(tool, arguments), {"host": BALANCER}
        found: dict[str, Any] = post(self.address, message, token=self.token, headers=headers).json()[
            "result"
        ]
        return found

    def refused(self, tool: str, **arguments: Any) -> str:
        answer = self(tool, **arguments)
        assert answer["isError"], answer
        return str(answer["content"][0]["text"])


@pytest.fixture
def token(file: Path, root: Path, transactional_db: None, alice: User) -> str:
    """Of an agent whose server was killed while it deleted the file."""
    token = make_token(alice, resource=f"http://{BALANCER}/mcp")
    with replica(keys=KEYS, root=root, tools="tests.bridge.cut_off") as address:
        call = Agent(address, token)
        decide_at(call("delete_file", path=str(file))["structuredContent"]["page"])
        with pytest.raises(httpx2.TransportError):
            call("delete_file", path=str(file))
    return token


@pytest.fixture
def agent_after(root: Path, token: str) -> Iterator[Agent]:
    """The same agent, who talks to the next server."""
    with replica(keys=KEYS, root=root) as address:
        yield Agent(address, token)


def test_a_deletion_that_was_cut_off_is_told_as_unknown_and_left_to_a_person(
    agent_after: Agent, file: Path
) -> None:
    call = agent_after
    row = Confirmation.objects.get()
    holding = file.parent / f".confirmhub-{row.id}"
    identity = {"confirmation_id": str(row.id)}

    seen = call("get_confirmation", **identity)["structuredContent"]
    listed = call("list_confirmations")["structuredContent"]["confirmations"]
    reported = call.refused("report_outcome", **identity, result="succeeded")
    again = call.refused("delete_file", path=str(file))
    (entry,) = call("list_files", path=str(file.parent))["structuredContent"]["entries"]
    (inside,) = call("list_files", path=str(holding))["structuredContent"]["entries"]

    assert (seen["status"], seen["result"]) == ("redeemed", None)
    assert seen["next"] == listed[0]["next"]
    for said in (seen["next"], reported):
        assert "it is unknown whether it was done" in said
        assert f"may be held, not deleted, as {holding}/file" in said
        assert "A person has to look" in said
        assert "call report_outcome" not in said
        assert "recorded the outcome" not in said
    assert f"{file} does not exist. " in again
    assert f"{holding.name}/file" in again
    assert "A person has to look" in again
    assert (entry["path"], entry["kind"]) == (str(holding), "folder")
    assert str(row.id) in entry["note"]
    assert "A person has to look" in entry["note"]
    assert inside["kind"] == "file"
    # Nobody but a person has put it back, deleted it or closed the record.
    assert (holding / "file").read_text() == "quarterly numbers\n"
    assert kinds_of_events(row) == ["requested", "approve", "redeemed"]


def test_a_deletion_that_was_cut_off_stands_in_the_operators_list_of_unknown_outcomes(
    token: str, settings: Settings, tmp_path: Path
) -> None:
    settings.STATIC_ROOT = tmp_path
    row = Confirmation.objects.get()
    operator = Client(headers={"host": "localhost"})
    operator.force_login(make_user("otto", is_staff=True, is_superuser=True))

    def listed() -> str:
        return operator.get("/admin/confirmations/confirmation/", {"view": "unknown"}).content.decode()

    assert str(row.id) not in listed()  # its report may still come
    make_overdue(row, redeemed_at=Now() - dt.timedelta(hours=1))

    assert f'href="{row.id}/change/"' in listed()
    assert "outcome unknown" in listed()

    ledger.resolve_outcome(
        confirmation_id=row.id, operator=User.objects.get(username="otto"), result=Result.FAILED, note="held"
    )

    assert str(row.id) not in listed()

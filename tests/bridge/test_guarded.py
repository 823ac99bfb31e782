"""Other packages bring guarded tools by setting, and write only what is theirs."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db import connection
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field, SecretStr

from confirmhub.confirmations import ledger
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status
from mcp_bridge import acting, lookups, threads
from mcp_bridge.guard import Guarded
from tests.bridge.hosts import call_message, decide_at, make_token, post
from tests.bridge.invoices import invoicing
from tests.bridge.payments import PAY, Pay
from tests.bridge.serving import BALANCER, replica
from tests.bridge.test_acting import nobody_waits
from tests.factories import decide, kinds_of_events

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


@pytest.fixture
def example(transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The examples of the page for authors, as they are printed there: a table, and modules on the path."""
    table, *modules = re.findall(r"```python\n(.*?)```", (DOCS / "tool-authors.md").read_text(), re.DOTALL)
    for name, module in zip(["my_tools", "my_invoices"], modules, strict=True):
        (tmp_path / f"{name}.py").write_text(module)
    (tmp_path / "my_tools_cut_off.py").write_text(CUT_OFF)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{DOCS.parent}")
    exec(table, {})
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE my_account")


# The same tool in a process that is killed when it has paid.
CUT_OFF = """
import os, signal
from dataclasses import replace
import my_tools
from mcp_bridge.guard import as_tool

def execute(*args):
    my_tools.execute(*args)
    os.kill(os.getpid(), signal.SIGKILL)

def tools():
    return [as_tool(replace(my_tools.TRANSFER, execute=execute))]
"""


class Payer:
    """Calls the tool of the example, wherever it is served."""

    def __init__(self, address: str, alice: User) -> None:
        self.address, self.token = address, make_token(alice, resource=f"http://{BALANCER}/mcp")

    def __call__(self, tool: str = "transfer", **arguments: Any) -> dict[str, Any]:
        message, headers = call_message(tool, arguments), {"host": BALANCER}
        answer = post(self.address, message, token=self.token, headers=headers)
        found: dict[str, Any] = answer.json()["result"]
        return found


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def balances() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, cents FROM my_account")
        return dict(cursor.fetchall())


def serve(root: Path, tools: str) -> contextlib.AbstractContextManager[str]:
    return replica(keys=["a-sealing-key-" * 3], root=root, tools=tools)


@pytest.mark.usefixtures("example")
def test_the_example_of_the_page_for_authors_runs_as_it_stands(root: Path, alice: User) -> None:
    with serve(root, "my_tools") as address:
        transfer = Payer(address, alice)
        refused = [transfer(to=to, cents=cents) for to, cents in (("rent", 100_001), ("x", 1), ("shared", 1))]
        first, second = transfer(to="rent", cents=60_000), transfer(to="rent", cents=50_000)
        for asked in (first, second):
            decide_at(asked["structuredContent"]["page"])
        done = transfer(to="rent", cents=60_000)
        changed = transfer(to="rent", cents=50_000)
        asked = transfer(to="rent", cents=40_000)

    assert all("too little on the shared one" in text(result) for result in refused)
    assert "Pay from the shared account?\n  Balance: 100000 cents\n" in text(first)
    assert text(done) == "Paid 60000 cents to rent."
    assert balances() == {"shared": 40_000, "rent": 60_000}
    assert "There is no such account to pay to, or too little" in text(changed)
    assert "Balance: 40000 cents" in text(asked)


@pytest.mark.usefixtures("example")
def test_a_transfer_that_is_cut_off_has_not_happened_and_happens_once_when_it_is_tried_again(
    root: Path, alice: User
) -> None:
    with serve(root, "my_tools_cut_off") as address:
        transfer = Payer(address, alice)
        decide_at(transfer(to="rent", cents=60_000)["structuredContent"]["page"])
        with pytest.raises(httpx2.TransportError):
            transfer(to="rent", cents=60_000)
    between, status = balances(), Confirmation.objects.get().status
    with serve(root, "my_tools") as address:
        transfer.address = address
        done = transfer(to="rent", cents=60_000)
        identity = {"confirmation_id": done["structuredContent"]["confirmation_id"]}
        again = transfer("redeem_confirmation", **identity)

    assert (between, status) == ({"shared": 100_000, "rent": 0}, Status.APPROVED)
    assert text(done) == "Paid 60000 cents to rent."
    assert "already redeemed" in text(again)
    assert balances() == {"shared": 40_000, "rent": 60_000}
    assert kinds_of_events(Confirmation.objects.get())[:4] == [
        "requested",
        "approve",
        "redeemed",
        "succeeded",
    ]


@pytest.mark.usefixtures("example")
def test_the_example_of_a_server_of_others_runs_as_it_stands(
    root: Path, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with invoicing() as server:
        monkeypatch.setenv("INVOICES_URL", server.url)
        with serve(root, "my_invoices") as address:
            send = partial(Payer(address, alice), "send_invoice", customer="C1234")
            unknown = send(customer="C9999", cents=1)
            asked = [send(cents=cents) for cents in (1, 2, 3)]
            for each in asked:
                decide_at(each["structuredContent"]["page"])
            done = send(cents=1)
            server.customer["version"] = "2"
            changed = send(cents=2)
            server.server_close()
            silent = send(cents=3)

    assert text(unknown) == "There is no such customer."
    assert "Send this invoice?\n  Customer: Anna\n" in text(asked[0])
    assert text(done) == "Sent invoice 1."
    identity = done["structuredContent"]["confirmation_id"]
    assert server.sent == {identity: {"customer": "C1234", "cents": 1}}
    assert "The target changed after it was shown." in text(changed)
    assert text(silent) == "The invoicing server does not answer. Nothing was done; try again later."
    assert [kinds_of_events(row)[-1] for row in Confirmation.objects.order_by("requested_at")] == [
        "succeeded",
        "revoked",
        "approve",
    ]


def test_what_a_tool_that_shares_the_transaction_refuses_leaves_the_yes_to_be_used(
    transactional_db: None, agent: Principal, alice: User
) -> None:
    shares = replace(PAY, one_transaction=True)
    arguments = Pay.model_validate(PAYMENT)
    asked = ledger.request(
        requester=agent, action=shares.action(arguments), observation=shares.observe(arguments)
    )
    decide(asked, alice)

    async def act(guarded: Guarded[Pay], key: str) -> acting.Done:
        call = acting.Call(guarded, arguments, guarded.action(arguments), agent)
        async with threads.running(), lookups.running(), acting.running():
            standing = await lookups.standing(asked.id, agent)
            return await acting.redeem_and_act(call, standing, key, check_caller=nobody_waits)

    def refuse(*_: Any) -> str:
        raise ToolError("The bank is closed.")

    with pytest.raises(ToolError, match=r"The bank is closed\. Nothing was done, and the yes was not used\."):
        asyncio.run(act(replace(shares, execute=refuse), "first"))
    between = kinds_of_events(asked)
    done, again = (asyncio.run(act(shares, "second")) for _ in range(2))

    assert between == ["requested", "approve"]
    assert (done.replayed, again.replayed) == (False, True)
    assert again.message == f"This was done before, and was not done again: {done.message}"
    assert kinds_of_events(asked) == ["requested", "approve", "redeemed", "succeeded"]


class Note(BaseModel):
    text: str = Field("", exclude=True)


class Hidden(Pay):
    note: Note


class Masked(Pay):
    password: SecretStr


@pytest.mark.parametrize(
    "arguments",
    [
        Hidden(to="DE89370400440532013000", cents=1, note=Note(text="executed, and never shown")),
        Masked(to="DE89370400440532013000", cents=1, password=SecretStr("one of many with one mask")),
    ],
)
def test_what_would_be_executed_and_not_shown_is_no_action(arguments: Pay) -> None:
    with pytest.raises(TypeError, match="are not what their JSON validates to"):
        replace(PAY, arguments=type(arguments)).action(arguments)

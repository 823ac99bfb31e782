"""Every kind of host, by what it declares and what the person does: where they are asked, what it hears."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import User
from django.db import connection

from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.states import Assurance, Mode, Status, Verdict
from tests.bridge.hosts import decide_at, in_database, make_token
from tests.factories import kinds_of_events, principal_for
from tests.hosts.bridge.fixtures import lamps
from tests.hosts.bridge.hosts import Answer, Host, Json, Node, python_host

# Where the person is asked: `page` is a page that the host opens for them (URL elicitation), `link` the
# same page by a link in an ordinary answer, since the host declared no way to open it, or speaks the old
# protocol, in which a server without sessions cannot know what it declared. Then what the host hears at
# last. To decline is to say no to the host itself. Where the host asks the person nothing there is nothing
# to decline, and its agent takes the question back: `cancelled`.
ON_THE_PAGE = """\
host         declares | approve       deny          ignore        decline
python auto  url      | page done     page denied   page expired  page declined
python auto  form     | link done     link denied   link expired  link cancelled
python auto  none     | link done     link denied   link expired  link cancelled
python old   url      | link done     link denied   link expired  link cancelled
python old   form     | link done     link denied   link expired  link cancelled
python old   none     | link done     link denied   link expired  link cancelled
v2 auto      url      | page done     page denied   page expired  page declined
v2 auto      form     | link done     link denied   link expired  link cancelled
v2 auto      none     | link done     link denied   link expired  link cancelled
v2 old       url      | link done     link denied   link expired  link cancelled
v2 old       form     | link done     link denied   link expired  link cancelled
v2 old       none     | link done     link denied   link expired  link cancelled
v1           url      | link done     link denied   link expired  link cancelled
v1           form     | link done     link denied   link expired  link cancelled
v1           none     | link done     link denied   link expired  link cancelled
"""

# The same where the policy takes a host's word: `form` is a form of the host's, in which the person chooses.
# Whoever ignores it says yes when time is up, which is too late.
BY_THE_HOST = """\
host         declares | approve       deny          ignore        decline
python auto  url      | page done     page denied   page expired  page declined
python auto  form     | form done     form declined form expired  form declined
python auto  none     | link done     link denied   link expired  link cancelled
python old   url      | link done     link denied   link expired  link cancelled
python old   form     | link done     link denied   link expired  link cancelled
python old   none     | link done     link denied   link expired  link cancelled
v2 auto      url      | page done     page denied   page expired  page declined
v2 auto      form     | form done     form declined form expired  form declined
v2 auto      none     | link done     link denied   link expired  link cancelled
v2 old       url      | link done     link denied   link expired  link cancelled
v2 old       form     | link done     link denied   link expired  link cancelled
v2 old       none     | link done     link denied   link expired  link cancelled
v1           url      | link done     link denied   link expired  link cancelled
v1           form     | link done     link denied   link expired  link cancelled
v1           none     | link done     link denied   link expired  link cancelled
"""

HOSTS = ("python auto", "python old", "v2 auto", "v2 old", "v1")
DECLARED: dict[str, Json | None] = {"url": {"url": {}}, "form": {"form": {}}, "none": None}
DECISIONS = ("approve", "deny", "ignore", "decline")
VERSIONS = {"auto": "2026-07-28", "old": "2025-11-25", "v1": "2025-11-25"}

HEARD = {
    "was denied": "denied",
    "has expired": "expired",
    "The person declined": "declined",
    "was cancelled": "cancelled",
}
LEFT = {
    "approve": Status.REDEEMED,
    "deny": Status.DENIED,
    "ignore": Status.EXPIRED,
    "decline": Status.CANCELLED,
}

PATIENT = "https://agent.example/client.json"
HASTY = "https://hasty.example/client.json"
"""A client whose questions expire while the tests wait, by a rule of its own."""


class Cell(NamedTuple):
    host: str
    declares: str
    decision: str

    @property
    def lamp(self) -> str:
        return ", ".join(self)


CELLS = [Cell(host, kind, decision) for host in HOSTS for kind in DECLARED for decision in DECISIONS]


class Person:
    """Who sits at one host, with one decision in mind."""

    def __init__(self, cell: Cell) -> None:
        self.lamp, self.decision = cell.lamp, cell.decision
        self.asked: list[str] = []

    async def answer(self, params: Json) -> Json:
        """What they say to what their host was asked to show them."""
        self.asked.append("page" if params["mode"] == "url" else "form")
        if self.decision == "decline":
            return {"action": "decline"}
        if params["mode"] == "url":
            await self.look_at(params["url"])
            return {"action": "accept"}
        assert f'lamp: "{self.lamp}"' in params["message"]
        [field] = params["requestedSchema"]["properties"]
        if self.decision == "ignore":
            await in_database(wait_until_too_late, self.lamp)
        return {"action": "accept", "content": {field: "deny" if self.decision == "deny" else "allow"}}

    async def look_at(self, page: str) -> None:
        verdict = {"approve": Verdict.APPROVE, "deny": Verdict.DENY}.get(self.decision)
        if verdict:
            await in_database(decide_at, page, verdict)


def wait_until_too_late(lamp: str) -> None:
    """Wait until the question about a lamp has expired, by the clock that says so."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_sleep_until(decide_by) FROM confirmations_confirmation WHERE arguments = %s",
            [json.dumps({"lamp": lamp}, separators=(",", ":"))],
        )


async def walk(host: Host, cell: Cell, person: Person) -> str:
    """What a host does that follows the answers it gets. Returns a cell of the table."""
    assert host.version == VERSIONS[cell.host.rpartition(" ")[2]]
    answer = await host.call("light", lamp=cell.lamp)
    if answer.data and answer.data["status"] == "waiting_for_person":
        person.asked.append("link")
        identity = {"confirmation_id": answer.data["confirmation_id"]}
        await person.look_at(answer.data["page"])
        if person.decision == "decline":
            await host.call("cancel_confirmation", **identity)
        answer = await host.call("redeem_confirmation", **identity)
    # Each person is asked once, however often the host comes back.
    return " ".join([*person.asked, heard(answer)])


def heard(answer: Answer) -> str:
    if not answer.refused:
        assert answer.data
        return str(answer.data["status"])
    [word] = [word for words, word in HEARD.items() if words in answer.text] or [answer.text]
    return word


async def outcomes(url: str, tokens: dict[str, str], cells: Iterable[Cell]) -> dict[Cell, str]:
    """The results of these cells, all at once."""

    async def one(cell: Cell, node: Node) -> str:
        sdk, _, mode = cell.host.partition(" ")
        person = Person(cell)
        how: dict[str, Any] = {
            "mode": "auto" if mode == "auto" else "legacy",
            "elicitation": DECLARED[cell.declares],
            "token": tokens[HASTY if cell.decision == "ignore" else PATIENT],
            "ask": person.answer,
        }
        if sdk == "python":
            async with python_host(url, **how) as host:
                return await walk(host, cell, person)
        return await walk(await node.host(sdk=sdk, **how), cell, person)

    async with Node.running(url) as node, asyncio.TaskGroup() as tasks:
        found = {cell: tasks.create_task(one(cell, node)) for cell in cells}
    return {cell: task.result() for cell, task in found.items()}


def table(found: dict[Cell, str]) -> str:
    """The results as they stand in the table."""

    def line(host: str, kind: str, cells: Iterable[str]) -> str:
        return f"{host:<12} {kind:<8} | {''.join(f'{cell:<14}' for cell in cells).rstrip()}\n"

    lines = [line("host", "declares", DECISIONS)]
    for host, kind in dict.fromkeys((cell.host, cell.declares) for cell in found):
        lines.append(line(host, kind, (found[Cell(host, kind, decision)] for decision in DECISIONS)))
    return "".join(lines)


@pytest.mark.parametrize(
    ("assurance", "expected"),
    [
        pytest.param(Assurance.PAGE, ON_THE_PAGE, id="page"),
        pytest.param(Assurance.HOST, BY_THE_HOST, id="host"),
    ],
)
def test_every_host_gets_its_confirmation_and_its_result(
    url: str, alice: User, assurance: Assurance, expected: str
) -> None:
    lamps.lit.clear()
    for rank, (client, within) in enumerate({HASTY: 3, PATIENT: 600}.items()):
        Rule.objects.create(
            name=client,
            rank=rank,
            client_id=client,
            mode=Mode.CONFIRM,
            decide_within=dt.timedelta(seconds=within),
            assurance=assurance,
        )
    tokens = {
        client: make_token(alice, resource=f"{url}/mcp", client_id=client) for client in (PATIENT, HASTY)
    }

    found = asyncio.run(outcomes(url, tokens, CELLS))

    assert table(found) == expected
    assert lamps.lit == {cell.lamp: 1 for cell in CELLS if cell.decision == "approve"}
    rows = asked_for(alice)
    left = {cell: rows[cell.lamp].effective_status for cell in CELLS}
    assert left == {cell: LEFT[cell.decision] for cell in CELLS}
    for cell in CELLS:
        row = rows[cell.lamp]
        given = Assurance.HOST if found[cell].startswith("form") else Assurance.PAGE
        assert all(decision.assurance == given for decision in row.decisions.all())
        assert row.decisions.count() == (cell.decision in ("approve", "deny"))
        if cell.decision == "approve":
            assert kinds_of_events(row) == ["requested", "approve", "redeemed", "succeeded"]


def asked_for(person: User) -> dict[str, Confirmation]:
    """What was asked of a person, by lamp: one question each."""
    rows = [
        row
        for client in (PATIENT, HASTY)
        for row in queries.list_recent_of(requester=principal_for(person, client_id=client), limit=100)
    ]
    found = {dict(row.fact_items)["Lamp"]: row for row in rows}
    assert len(found) == len(rows) == Confirmation.objects.count()
    return found

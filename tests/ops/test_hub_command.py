"""`manage.py hub`: operators look and settle from a terminal, and never approve."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from confirmhub.confirmations import audit, ledger, queries
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.errors import Busy
from confirmhub.confirmations.models import Halt
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.roles import OPERATORS
from confirmhub.confirmations.states import Mode, Status
from confirmhub.oauth import services
from tests.bridge.hosts import make_token
from tests.confirmations.test_rules import make_rule
from tests.factories import ARGUMENTS, AUDIENCE, make_approved, make_pending, make_user, principal_for, redeem
from tests.ops.service import ROOT

HOSTILE = Action(audience=AUDIENCE, name="files.delete", arguments={"path": "a\x1b[2K\u202eb"})
SIGNED = ("--as", "olga", "--reason", "Not today")


@pytest.fixture(autouse=True)
def olga(db: None) -> User:
    person = make_user("olga")
    person.groups.add(Group.objects.get(name=OPERATORS))
    return person


def hub(*arguments: object) -> str:
    out = io.StringIO()
    call_command("hub", *map(str, arguments), stdout=out, stderr=io.StringIO())
    return out.getvalue()


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_newest_are_listed_for_people_and_for_programs(agent: Principal, alice: User) -> None:
    first, second = make_approved(agent, alice), make_pending(agent, action=HOSTILE)

    assert [line.split()[0] for line in hub("list").splitlines()] == [str(second.id), str(first.id)]
    assert [row["id"] for row in lines(hub("list", "--json", "--status", "approved"))] == [str(first.id)]
    assert lines(hub("list", "--json", "--client", "other")) == []
    assert len(hub("list", "--limit", 1).splitlines()) == 1


def test_programs_get_the_arguments_as_they_are(agent: Principal) -> None:
    make_pending(agent)

    [row] = lines(hub("list", "--json"))

    assert row["arguments"] == ARGUMENTS


def test_the_person_is_named(agent: Principal, alice: User) -> None:
    row = make_pending(agent)

    assert hub("list").splitlines()[0].endswith("  for alice")
    assert f"On behalf of     alice (account {alice.pk})" in hub("show", row.id).splitlines()


def test_a_service_that_asks_for_nobody_is_named(alice: User) -> None:
    service, _ = services.create(name="Pay\x1bments", audience=AUDIENCE)
    group = Group.objects.create(name="payers")
    group.user_set.add(alice)
    make_rule(Mode.APPROVE, approver_group=group)
    subject = f"client:{service.client_id}"
    row = make_pending(Principal(client_id=service.client_id, subject=subject))

    assert hub("list").splitlines()[0].endswith("  for Pay⟨U+001B⟩ments")
    assert f"On behalf of     Pay⟨U+001B⟩ments (account {subject})" in hub("show", row.id).splitlines()


def test_the_clients_of_a_list_are_looked_up_at_once(agent: Principal, alice: User) -> None:
    for number in range(3):
        action = Action(audience=AUDIENCE, name="files.delete", arguments={"n": number})
        make_pending(principal_for(alice, client_id=f"https://agent{number}.example/c.json"), action=action)

    with CaptureQueriesContext(connection) as asked:
        hub("list")

    assert len(asked) == 3  # the rows, their clients, their people


def test_what_an_agent_wrote_reaches_no_terminal_as_it_is(agent: Principal) -> None:
    row = make_pending(agent, action=HOSTILE, summary="\x1b]8;;https://evil.example\x07x\u202e")

    for text in (hub("show", row.id), hub("list"), hub("show", row.id, "--json"), hub("list", "--json")):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert lines(hub("show", row.id, "--json"))[0]["summary"] == row.summary
    assert "Log              whole" in hub("show", row.id)


def test_what_is_shown_to_people_is_no_json(agent: Principal, alice: User) -> None:
    row = make_pending(agent, action=Action(audience=AUDIENCE, name="pay", arguments={"to": "Jürgen"}))
    hub("deny", row.id, *SIGNED)

    shown = hub("show", row.id)

    assert 'Argument to      "Jürgen"' in shown.splitlines()
    [settled] = [line for line in shown.splitlines() if "  denied  " in line]
    assert settled.endswith("reason: Not today")
    assert "{" not in shown


def test_an_operator_settles(agent: Principal, alice: User) -> None:
    denied = make_pending(agent)
    hub("deny", denied.id, *SIGNED)
    cancelled = make_pending(agent)
    hub("cancel", cancelled.id, *SIGNED)
    revoked = make_approved(agent, alice)
    hub("revoke", revoked.id, *SIGNED)
    spent = make_approved(agent, alice)
    redeem(spent, agent)
    hub("resolve", spent.id, *SIGNED, "--result", "failed")

    rows = [denied, cancelled, revoked, spent]
    for row in rows:
        row.refresh_from_db()
    assert [row.status for row in rows] == [Status.DENIED, Status.CANCELLED, Status.REVOKED, Status.REDEEMED]
    assert (spent.outcome.result, spent.outcome.detail) == ("failed", "Not today")
    assert "Not today" in hub("show", denied.id)


@pytest.mark.parametrize(
    ("verb", "more", "is_now"),
    [
        ("deny", (), {"status": "denied"}),
        ("cancel", (), {"status": "cancelled"}),
        ("revoke", (), {"status": "revoked"}),
        (
            "resolve",
            ("--result", "failed"),
            {"status": "redeemed", "outcome": {"result": "failed", "detail": "Not today"}},
        ),
    ],
)
def test_programs_are_told_what_a_move_made_of_it(
    agent: Principal, alice: User, verb: str, more: tuple[str, ...], is_now: dict[str, object]
) -> None:
    row = make_pending(agent) if verb in ("deny", "cancel") else make_approved(agent, alice)
    if verb == "resolve":
        redeem(row, agent)

    [said] = lines(hub(verb, row.id, *SIGNED, *more, "--json"))

    assert said["id"] == str(row.id)
    assert {name: said[name] for name in is_now} == is_now


def test_a_stop_says_what_it_covers(agent: Principal, alice: User) -> None:
    make_pending(agent)
    make_token(alice, resource=AUDIENCE, client_id=agent.client_id)

    narrowed = ("--client", agent.client_id, "--user", "alice", "--action", "pay*.transfer")
    for limits in ((), narrowed):
        said = hub("stop", *SIGNED, *limits)
        assert "It covers 1 open confirmation, and all that are asked for until it is lifted.\nLet it" in said


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (["--action", "payment.transfer"], "Nothing that it covers was ever asked for"),
        (["--action", "payments_transfer"], "Nothing that it covers was ever asked for"),
        (
            ["--client", "https://agent.example/cleint.json"],
            "No program with the id https://agent.example/cleint",
        ),
        (["--client", "x\u202e"], "No program with the id x⟨U+202E⟩ is known"),
        (["--user", "olga"], "Nothing that it covers was ever asked for"),
    ],
)
def test_a_stop_with_a_slip_of_the_pen_says_so(agent: Principal, limits: list[str], said: str) -> None:
    make_pending(agent)

    text = hub("stop", *SIGNED, *limits)

    assert "It covers 0 open confirmations," in text
    assert said in text


def test_a_stop_of_which_nobody_can_count_in_time_is_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_slow(**_: object) -> None:
        raise OperationalError

    monkeypatch.setattr(queries, "covered_by", too_slow)

    assert "Stopped. How much it covers could not be counted in time.\n" in hub("stop", *SIGNED)
    [said] = lines(hub("stop", *SIGNED, "--json"))
    assert (said["open"], said["ever_asked"]) == (None, None)
    assert len(queries.list_halts()) == 2


def test_a_stop_that_is_set_although_something_did_not_end_is_not_called_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def set_and_not_waited_for(**_: object) -> None:
        raise Busy("The stop is set. But what began before did not end in time.")

    monkeypatch.setattr(ledger, "halt", set_and_not_waited_for)

    with pytest.raises(CommandError, match=r"\AThe stop is set\."):
        hub("stop", *SIGNED)


def test_programs_are_told_what_a_stop_covers(agent: Principal) -> None:
    make_pending(agent)

    [stop] = lines(hub("stop", *SIGNED, "--client", "cleint", "--json"))
    [lifted] = lines(hub("lift", stop["id"], *SIGNED, "--json"))

    assert (stop["open"], stop["ever_asked"], stop["client_known"]) == (0, False, False)
    assert (stop["client"], stop["action"]) == ("cleint", "*")
    assert lifted == {"id": stop["id"], "lifted": True, "reason": "Not today"}


def test_a_stop_is_lifted_once() -> None:
    [stop] = lines(hub("stop", *SIGNED, "--json"))
    hub("lift", stop["id"], *SIGNED)

    with pytest.raises(CommandError, match="This stop was lifted before"):
        hub("lift", stop["id"], *SIGNED)


def test_redemptions_are_stopped_and_let_on(alice: User) -> None:
    hub("stop", *SIGNED, "--user", "alice", "--action", "pay.*")

    [stop] = lines(hub("stops", "--json"))
    assert (stop["user"], stop["action"], stop["client"]) == (str(alice.pk), "pay.*", "any")
    assert "Not today" in hub("stops")
    hub("lift", stop["id"], *SIGNED)
    assert hub("stops") == ""


def test_the_stops_in_force_name_the_service_and_the_person_that_they_are_for(alice: User) -> None:
    service, _ = services.create(name="Payroll", audience="https://pay.example/mcp")

    hub("stop", *SIGNED, "--client", service.client_id, "--user", "alice")

    assert "client Payroll (pay.example)  user alice  action *" in hub("stops")


@pytest.mark.django_db(transaction=True)
def test_the_log_is_verified_and_exported(agent: Principal, alice: User) -> None:
    make_approved(agent, alice)
    audit.seal(limit=10)

    assert hub("verify").startswith("Every link holds: 1 confirmation ")
    assert lines(hub("verify", "--json"))[0].items() >= {"whole": True, "confirmations": 1}.items()
    assert lines(hub("export"))[-1]["type"] == "end"


def test_programs_are_told_what_is_broken(tmp_path: Path) -> None:
    export = tmp_path / "export"
    export.write_text("[]\n")
    out = io.StringIO()

    with pytest.raises(CommandError, match="The log is broken"):
        call_command("hub", "verify", "--file", str(export), "--json", stdout=out)
    [said] = lines(out.getvalue())
    assert (said["whole"], "broken" in said) == (False, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["deny", uuid.UUID(int=1), *SIGNED], "No such confirmation"),
        (["show", uuid.UUID(int=1)], "No such confirmation"),
        (["deny", uuid.UUID(int=1), "--as", "eve", "--reason", "r"], "lacks the permission"),
        (["deny", uuid.UUID(int=1), "--as", "nobody", "--reason", "r"], "There is no user nobody"),
        (["deny", uuid.UUID(int=1), "--as", "olga", "--reason", " "], "Give a reason"),
        (["lift", 1, *SIGNED], "There is no such stop"),
        (["stop", *SIGNED, "--action", "a b"], "printable ASCII"),
        (["stop", "--as", "eve", "--reason", "r"], "lacks the permission"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(arguments: list[object], said: str) -> None:
    make_user("eve")

    with pytest.raises(CommandError, match=said):
        hub(*arguments)
    assert not Halt.objects.exists()


def test_a_database_that_cannot_be_used_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: object) -> None:
        raise OperationalError("the connection is lost\nDETAIL: s3cret")

    monkeypatch.setattr(queries, "list_halts", away)

    with pytest.raises(CommandError) as said:
        hub("stops")
    assert str(said.value) == "The database cannot be used: the connection is lost"


@pytest.mark.django_db(transaction=True)
def test_who_reads_no_more_gets_no_trace(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(hub("export"))
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "manage.py", "hub", "verify", "--file", str(tmp_path / "log.jsonl")]

    with os.fdopen(writes, "wb") as closed:
        ended = subprocess.run(
            command, check=False, cwd=ROOT, stdout=closed, stderr=subprocess.PIPE, timeout=60
        )

    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize(
    "arguments", [["approve", uuid.UUID(int=1)], [], ["list", "--limit", 0], ["show", 1]]
)
def test_there_is_no_way_to_approve(arguments: list[object]) -> None:
    with pytest.raises((CommandError, SystemExit)):
        hub(*arguments)

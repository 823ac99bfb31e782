"""The log as evidence: what holds is said to hold, and one changed byte anywhere is found and named."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now

from confirmhub.confirmations import audit, evidence, ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.evidence import BrokenLog, Checked, Record
from confirmhub.confirmations.models import Checkpoint, Confirmation, Event, Seal
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result, Verdict
from tests.confirmations.clock import make_overdue
from tests.confirmations.test_races import at_once
from tests.confirmations.test_rules import make_rule
from tests.factories import TRANSFER, decide, make_approved, make_pending, redeem
from tests.invariants import proves

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def history(agent: Principal, alice: User) -> dict[str, Confirmation]:
    """One confirmation of each end, in three checkpoints, and one open."""

    def action(name: str) -> Action:
        return replace(TRANSFER, name=name)

    found = {"done": make_approved(agent, alice, action=action("done"))}
    receipt = redeem(found["done"], agent, action=action("done"))
    audit.seal(limit=100)
    ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED, detail="ä\x00")
    found["denied"] = decide(make_pending(agent, action=action("denied")), alice, Verdict.DENY)
    audit.seal(limit=100)
    found["cancelled"] = make_pending(agent, action=action("cancelled"))
    ledger.cancel(confirmation_id=found["cancelled"].id, requester=agent)
    found["revoked"] = make_approved(agent, alice, action=action("revoked"))
    ledger.revoke(confirmation_id=found["revoked"].id, revoker=alice, reason="no")
    found["expired"] = make_overdue(make_approved(agent, alice, action=action("expired")), redeem_by=Now())
    ledger.expire_due(limit=10)
    audit.seal(limit=100)
    found["open"] = make_approved(agent, alice, action=action("open"))
    return found


def test_a_whole_log_is_said_to_hold_from_the_database_and_from_an_export(
    history: dict[str, Confirmation],
) -> None:
    with audit.records() as found:
        exported = [json.dumps(record) for record in found]

    checked = check()

    assert checked == evidence.check(json.loads(line) for line in exported)
    assert (checked.confirmations, checked.unsealed, checked.checkpoints, checked.gone) == (6, 1, 3, 0)
    assert checked.events == Event.objects.count()
    assert all(line.isascii() for line in exported)


def test_an_outcome_that_comes_after_a_seal_is_sealed_in_its_turn(history: dict[str, Confirmation]) -> None:
    counts = Seal.objects.filter(confirmation_id=history["done"].id).order_by("event_count")

    assert list(counts.values_list("event_count", "checkpoint_id")) == [(3, 1), (4, 2)]
    assert audit.seal(limit=100) == 0
    assert Checkpoint.objects.count() == 3


# Each as somebody would do it who owns the tables, and the words with which it must be found.
FORGERIES = {
    "a-byte-of-an-event": (
        "UPDATE confirmations_event SET detail = replace(detail, 'no', 'on') WHERE kind = 'revoked'",
        "event 3 does not follow",
    ),
    "who-did-it": ("UPDATE confirmations_event SET actor = 'user 0' WHERE kind = 'deny'", "event 2 does not"),
    "when": (
        "UPDATE confirmations_event SET at = at + interval '1 microsecond' WHERE seq = 1",
        "event 1 does",
    ),
    "an-event-left-out": (
        """DELETE FROM confirmations_event WHERE kind = 'approve' AND confirmation_id IN
        (SELECT id FROM confirmations_confirmation WHERE status = 'redeemed')""",
        "event 2 does not follow",
    ),
    "the-last-event-left-out": ("DELETE FROM confirmations_event WHERE kind = 'succeeded'", "does not end"),
    "the-status": (
        "UPDATE confirmations_confirmation SET status = 'denied' WHERE status = 'cancelled'",
        "its log says cancelled",
    ),
    "the-arguments": (
        "UPDATE confirmations_confirmation SET arguments = replace(arguments, '1250', '1251')",
        "not for the action",
    ),
    "the-screen": ("UPDATE confirmations_confirmation SET view_digest = sha256('')", "not for the action"),
    "a-seal": (
        "UPDATE confirmations_seal SET event_count = 2 WHERE event_count = 4",
        "its first 2 events are not",
    ),
    "a-checkpoint": ("UPDATE confirmations_checkpoint SET at = now() WHERE seq = 1", "checkpoint 1 does not"),
    "a-checkpoint-left-out": (
        """DELETE FROM confirmations_seal WHERE checkpoint_id = 2;
        DELETE FROM confirmations_checkpoint WHERE seq = 2""",
        "checkpoint 2 does not",
    ),
}


@proves("log:tamper-evident")
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_found_and_named(history: dict[str, Confirmation], forgery: str) -> None:
    statement, says = FORGERIES[forgery]
    as_owner(statement)

    with pytest.raises(BrokenLog, match=says):
        check()


@proves("log:tamper-evident")
def test_a_log_that_was_rewritten_with_its_hashes_is_found_by_its_seal(
    history: dict[str, Confirmation],
) -> None:
    denied = history["denied"]
    as_owner(
        f"""
        UPDATE confirmations_event SET actor = 'user 0' WHERE confirmation_id = '{denied.id}' AND seq = 2;
        UPDATE confirmations_event AS e SET hash = confirmhub_event_hash(
            b.hash, e.confirmation_id, e.seq, e.kind, e.actor, e.at, e.detail)
        FROM confirmations_event AS b
        WHERE e.confirmation_id = '{denied.id}' AND e.seq = 2 AND b.confirmation_id = e.confirmation_id
            AND b.seq = 1;
        UPDATE confirmations_confirmation AS c SET event_head = e.hash FROM confirmations_event AS e
        WHERE e.confirmation_id = c.id AND e.seq = 2 AND c.id = '{denied.id}'
        """
    )

    with pytest.raises(BrokenLog, match=f"{denied.id}: its first 2 events are not those"):
        check()


@pytest.mark.parametrize(
    "edit",
    [
        lambda lines: (lines.pop(0), lines[-1].update(confirmations=5)),
        lambda lines: lines[0].update(seals=[]),
        lambda lines: next(line for line in lines if line["type"] == "checkpoint")["seals"][0].__setitem__(
            3, False
        ),
    ],
)
def test_a_record_left_out_of_an_export_is_found(
    history: dict[str, Confirmation], edit: Callable[[list[Record]], Any]
) -> None:
    with audit.records() as found:
        lines = list(found)
    types = ["confirmation", "halts", "checkpoint", "end"]
    lines.sort(key=lambda line: (types.index(line["type"]), line.get("status") == "approved"))
    edit(lines)

    with pytest.raises(BrokenLog, match="left out or put in"):
        evidence.check(lines)


@pytest.mark.parametrize("kept", [range(0), range(1), range(6), range(8), range(10), range(1, 11)])
def test_an_export_that_was_cut_off_is_refused(
    history: dict[str, Confirmation], tmp_path: Path, kept: range
) -> None:
    with audit.records() as found:
        lines = [json.dumps(record) for record in found]
    # The one that is open comes first: no checkpoint would miss it.
    lines.sort(key=lambda line: ('"end"' in line, '"checkpoint"' in line, '"status": "approved"' not in line))
    assert len(lines) == 11
    export = tmp_path / "export.jsonl"
    export.write_text("".join(f"{lines[number]}\n" for number in kept))

    with pytest.raises(CommandError, match="The log is broken: it was cut off"):
        call_command("verify_audit", file=export)


def test_nothing_may_follow_the_end_of_an_export(history: dict[str, Confirmation]) -> None:
    with audit.records() as found:
        lines = list(found)

    with pytest.raises(BrokenLog, match="record 12 stands after the end"):
        evidence.check([*lines, lines[0]])


@pytest.mark.parametrize(
    "line",
    [
        '"\u00e4"',
        "[" * 100_000,
        '{"type":"end"}',
        "null",
        "[]",
        "{}",
        '{"type":"confirmation"}',
        '{"type":"checkpoint","seals":[1]}',
        "{",
    ],
)
def test_what_is_no_record_is_refused_and_not_a_crash(tmp_path: Path, line: str) -> None:
    export = tmp_path / "export.jsonl"
    export.write_text(line + "\n")

    with pytest.raises(CommandError, match=r"The log is broken: (record|line) 1"):
        call_command("verify_audit", file=export)


def test_the_commands_export_and_check_and_say_what_holds(
    history: dict[str, Confirmation], tmp_path: Path
) -> None:
    export, said = tmp_path / "export.jsonl", io.StringIO()
    with export.open("w") as file:
        call_command("export_audit", stdout=file)

    call_command("verify_audit", stdout=said)
    call_command("verify_audit", file=export, stdout=said)

    events = Event.objects.count()
    holds = f"Every link holds: 6 confirmations (1 not sealed yet), {events} events, 3 checkpoints, 0 stops."
    assert said.getvalue().splitlines() == [holds, holds]
    as_owner("UPDATE confirmations_event SET actor = 'user 0' WHERE kind = 'deny'")
    with pytest.raises(CommandError, match=r"The log is broken: confirmation .*: event 2"):
        call_command("verify_audit")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("verify_audit", file=tmp_path / "missing")


def test_what_is_finished_sealed_and_old_leaves_in_batches_and_its_seals_stay(
    history: dict[str, Confirmation],
) -> None:
    week = timedelta(days=7)
    for row in history.values():
        make_overdue(row, requested_at=Now() - timedelta(days=8))
    assert audit.retire(older_than=timedelta(days=9), limit=10) == 0

    left = [audit.retire(older_than=week, limit=3) for _ in range(3)]

    assert left == [3, 2, 0]
    assert list(Confirmation.objects.all()) == [history["open"]]
    assert check().gone == 6


def test_what_is_unsealed_or_without_an_outcome_does_not_leave(agent: Principal, alice: User) -> None:
    spent, denied = make_approved(agent, alice), make_pending(agent, action=replace(TRANSFER, name="other"))
    redeem(spent, agent)
    audit.seal(limit=10)
    decide(denied, alice, Verdict.DENY)
    for row in (spent, denied):
        make_overdue(row, requested_at=Now() - timedelta(days=8))

    assert audit.retire(older_than=timedelta(days=7), limit=10) == 0
    assert Confirmation.objects.count() == 2


def test_nothing_younger_than_a_day_and_nothing_by_hand_leaves(history: dict[str, Confirmation]) -> None:
    with pytest.raises(DatabaseError, match="younger than a day"):
        audit.retire(older_than=timedelta(hours=23), limit=10)
    for table in ("confirmation", "event", "checkpoint", "seal"):
        with pytest.raises(DatabaseError, match="only ever added"), connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM confirmations_{table}")


def test_of_two_that_seal_at_once_none_seals_twice_and_nothing_is_missed(
    agent: Principal, alice: User
) -> None:
    make_rule("allow", max_open=100)
    for number in range(20):
        action = replace(TRANSFER, name=f"action.{number}")
        redeem(make_pending(agent, action=action), agent, action=action)

    at_once(4, lambda _: audit.seal(limit=5))
    while audit.seal(limit=5):
        pass

    assert Seal.objects.count() == 20
    assert check().confirmations == 20


def check() -> Checked:
    with audit.records() as found:
        return evidence.check(found)


def as_owner(statements: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for model in apps.get_app_config("confirmations").get_models():
            cursor.execute(f"ALTER TABLE {model._meta.db_table} DISABLE TRIGGER USER")
        cursor.execute(statements)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table with checks to come cannot be altered
        for model in apps.get_app_config("confirmations").get_models():
            cursor.execute(f"ALTER TABLE {model._meta.db_table} ENABLE TRIGGER USER")

"""The log of stops as evidence: each use of the kill switch is on it; a stop removed or changed is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from confirmhub.confirmations import audit, evidence, ledger
from confirmhub.confirmations.evidence import BrokenLog, Record
from confirmhub.confirmations.models import Halt, HaltEvent
from tests.confirmations.test_audit import as_owner, check
from tests.confirmations.test_races import at_once
from tests.factories import make_user
from tests.invariants import proves

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def olga(db: None) -> User:
    return make_user("olga", is_superuser=True)


@pytest.fixture
def stops(olga: User) -> list[Halt]:
    """One that was lifted and one in force, both sealed."""
    first = ledger.halt(operator=olga, reason="Look \x00 into it", action_pattern="pay_*", client_id="c")
    ledger.lift(halt_id=first.pk, operator=olga, reason="A drill")
    second = ledger.halt(operator=olga, reason="Again", subject="7")
    assert audit.seal(limit=10) == 1
    return [first, second]


def exported() -> list[Record]:
    with audit.records() as found:
        return [json.loads(json.dumps(record)) for record in found]


@proves("log:stops")
def test_each_use_of_the_kill_switch_is_an_event_that_says_who_did_what_and_why(
    stops: list[Halt], olga: User
) -> None:
    events = [
        (event.seq, event.kind, event.actor, json.loads(event.detail)) for event in HaltEvent.objects.all()
    ]

    covered = {"client_id": "c", "subject": "", "action_pattern": "pay_*", "action_like": "pay\\_%"}
    first, second = (str(stop.pk) for stop in stops)
    who = f"user {olga.pk}"
    everything = {"client_id": "", "subject": "7", "action_pattern": "*", "action_like": "%"}
    assert events == [
        (1, "stopped", who, covered | {"halt": first, "reason": "Look \x00 into it"}),
        (2, "lifted", who, {"halt": first, "reason": "A drill"}),
        (3, "stopped", who, everything | {"halt": second, "reason": "Again"}),
    ]


def test_the_stops_are_checked_in_the_database_and_in_an_export(stops: list[Halt], olga: User) -> None:
    checked = check()

    assert checked == evidence.check(exported())
    assert (checked.halts, checked.unsealed_halts, checked.checkpoints, checked.gone) == (2, 0, 1, 0)
    assert audit.seal(limit=10) == 0
    ledger.lift(halt_id=stops[1].pk, operator=olga, reason="Over")
    assert check().unsealed_halts == 1
    assert audit.seal(limit=10) == 1
    assert check().unsealed_halts == 0


# Each as somebody would do it who owns the tables, and the words with which it must be found.
FORGERIES = {
    "a-stop-that-is-gone": ("DELETE FROM confirmations_halt WHERE reason = '\"Again\"'", "stop .*: the row"),
    "a-stop-narrowed": ("UPDATE confirmations_halt SET action_like = 'x'", "stop .*: the row"),
    "a-stop-for-another": ("UPDATE confirmations_halt SET subject = '8'", "stop .*: the row"),
    "its-reason": ("UPDATE confirmations_halt SET reason = '\"x\"'", "stop .*: the row"),
    "when": ("UPDATE confirmations_halt SET set_at = now()", "stop .*: the row"),
    "lifted-by-hand": (
        "UPDATE confirmations_halt SET lifted_at = now(), lifted_by_id = set_by_id WHERE lifted_at IS NULL",
        "stop .*: the row",
    ),
    "set-by-hand": (
        """INSERT INTO confirmations_halt
        (client_id, subject, action_pattern, action_like, reason, lift_reason, set_by_id)
        SELECT '', '', '*', '%', '"x"', '""', set_by_id FROM confirmations_halt LIMIT 1""",
        "stop .*: the row",
    ),
    "an-event-changed": (
        "UPDATE confirmations_haltevent SET actor = 'user 0' WHERE seq = 2",
        "the log of stops: event 2 does not follow",
    ),
    "an-event-left-out": ("DELETE FROM confirmations_haltevent WHERE seq = 1", "event 1 does not follow"),
    "the-last-with-its-stop": (
        """DELETE FROM confirmations_haltevent WHERE seq = 3;
        DELETE FROM confirmations_halt WHERE lifted_at IS NULL""",
        "the log of stops: its first 3 events are not those that a checkpoint sealed",
    ),
    "all-of-it": (
        "DELETE FROM confirmations_haltevent; DELETE FROM confirmations_halt",
        "the log of stops: its first 3 events are not those that a checkpoint sealed",
    ),
    "all-of-it-with-its-seals": (
        """DELETE FROM confirmations_haltevent; DELETE FROM confirmations_halt;
        DELETE FROM confirmations_seal""",
        "checkpoint 1 does not",
    ),
    "rewritten-with-its-hashes": (
        """UPDATE confirmations_haltevent SET actor = 'user 0' WHERE seq = 3;
        UPDATE confirmations_haltevent AS e SET hash = confirmhub_event_hash(
            b.hash, '00000000-0000-0000-0000-000000000000', e.seq, e.kind, e.actor, e.at, e.detail)
        FROM confirmations_haltevent AS b WHERE e.seq = 3 AND b.seq = 2""",
        "the log of stops: its first 3 events are not those that a checkpoint sealed",
    ),
}


@proves("log:stops")
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_stop_removed_or_changed_is_found_and_named(stops: list[Halt], forgery: str) -> None:
    statement, says = FORGERIES[forgery]
    as_owner(statement)

    with pytest.raises(BrokenLog, match=says):
        check()


# Events that a forger adds with sound hashes, after those of `stops`.
IMPOSSIBLE = {
    "lifted-without-being-set": ("lifted", "99"),
    "set-twice": ("stopped", "second"),
    "lifted-twice": ("lifted", "first"),
    "set-again-after-it-was-lifted": ("stopped", "first"),
    "of-no-known-kind": ("paused", "second"),
}


@proves("log:stops")
@pytest.mark.parametrize("forgery", IMPOSSIBLE)
def test_an_event_that_cannot_follow_is_found_and_named(stops: list[Halt], forgery: str) -> None:
    kind, halt = IMPOSSIBLE[forgery]
    names = {"first": str(stops[0].pk), "second": str(stops[1].pk)}
    lines = exported()
    log = next(line for line in lines if line["type"] == "halts")
    last = log["events"][-1]
    said = json.loads(log["events"][0]["detail"]) | {"halt": names.get(halt, halt)}
    event = last | {"seq": 4, "kind": kind, "detail": json.dumps(said)}
    hash_ = evidence.event_hash(before=bytes.fromhex(last["hash"]), log=evidence.STOPS, event=event)
    log["events"].append(event | {"hash": hash_.hex()})

    with pytest.raises(BrokenLog, match="the log of stops: event 4 cannot follow those before"):
        evidence.check(lines)


def _without_the_log(lines: list[Record]) -> None:
    lines[:] = [line for line in lines if line["type"] != "halts"]
    lines[-1]["halts"] = 0


def _as_if_it_had_left(lines: list[Record]) -> None:
    _without_the_log(lines)
    next(line for line in lines if line["type"] == "checkpoint")["seals"][0][3] = False


@proves("log:stops")
@pytest.mark.parametrize("edit", [_without_the_log, _as_if_it_had_left])
def test_stops_left_out_of_an_export_are_found(
    stops: list[Halt], edit: Callable[[list[Record]], Any]
) -> None:
    lines = exported()
    edit(lines)

    with pytest.raises(BrokenLog, match="left out or put in"):
        evidence.check(lines)


def test_a_stop_that_no_checkpoint_seals_yet_is_counted_in_an_export(olga: User) -> None:
    ledger.halt(operator=olga, reason="Stop")
    lines = [line for line in exported() if line["type"] != "halts"]

    with pytest.raises(BrokenLog, match="should hold 0 confirmations, 0 checkpoints and 1 halts"):
        evidence.check(lines)


def test_the_log_of_stops_is_only_ever_added_to(stops: list[Halt]) -> None:
    with pytest.raises(IntegrityError, match="only ever added"), transaction.atomic():
        HaltEvent.objects.filter(seq=1).update(actor="user 0")
    with pytest.raises(IntegrityError, match="only ever added"), transaction.atomic():
        HaltEvent.objects.filter(seq=3).delete()


def test_stops_that_are_set_at_once_stand_in_one_chain(olga: User) -> None:
    at_once(6, lambda number: ledger.halt(operator=olga, reason=f"Stop {number}"))

    assert list(HaltEvent.objects.values_list("seq", flat=True)) == [1, 2, 3, 4, 5, 6]
    assert check().halts == 6

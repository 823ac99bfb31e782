"""The logs' chains in the database: nobody takes a number out of turn, and no log is emptied at once."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction

from confirmhub.confirmations import audit, ledger
from confirmhub.confirmations.models import Event, Halt, HaltEvent
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result
from tests.confirmations.test_audit import check
from tests.factories import make_approved, make_user, redeem
from tests.invariants import proves

pytestmark = pytest.mark.django_db(transaction=True)

# What keeps its rows: each of these has a trigger that refuses to let single ones go.
KEPT = """
SELECT tgrelid::regclass::text FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE proname IN ('confirmations_append_only', 'confirmations_halt_guard') AND tgtype::int & 8 > 0
"""


@pytest.fixture
def olga(db: None) -> User:
    return make_user("olga", is_superuser=True)


def run(statement: str, *values: object) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)


@proves("log:chained")
@pytest.mark.parametrize("number", [1, 3, 2_147_483_647])
def test_no_line_of_the_stops_takes_a_number_out_of_turn(olga: User, number: int) -> None:
    ledger.halt(operator=olga, reason="Stop")

    with pytest.raises(IntegrityError, match=f"number 2 follows, and not {number}"):
        run(
            "INSERT INTO confirmations_haltevent (seq, kind, actor, at, detail, hash)"
            " VALUES (%s, 'stopped', 'user 0', now(), '{}', sha256(''))",
            number,
        )

    ledger.halt(operator=olga, reason="Again")
    assert list(HaltEvent.objects.values_list("seq", flat=True)) == [1, 2]
    assert check().halts == 2


@proves("log:chained")
@pytest.mark.parametrize("number", [0, 1, 3, 9_223_372_036_854_775_807])
def test_no_checkpoint_takes_a_number_out_of_turn(agent: Principal, alice: User, number: int) -> None:
    approved = make_approved(agent, alice)
    receipt = redeem(approved, agent)
    assert audit.seal(limit=10) == 1

    with pytest.raises(IntegrityError, match=f"number 2 follows, and not {number}"):
        run(
            "INSERT INTO confirmations_checkpoint (seq, at, count, hash) VALUES (%s, now(), 1, sha256(''))",
            number,
        )

    ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED)
    assert audit.seal(limit=10) == 1
    assert check().checkpoints == 2


@proves("log:chained")
@pytest.mark.parametrize("number", [1, 2, 3, 2_147_483_647])
def test_no_event_stands_but_at_the_end_of_its_log(agent: Principal, alice: User, number: int) -> None:
    approved = make_approved(agent, alice)

    with pytest.raises(IntegrityError, match="is not where its log ends"):
        run(
            "INSERT INTO confirmations_event (confirmation_id, seq, kind, actor, at, detail, hash)"
            " VALUES (%s, %s, 'redeemed', 'user 0', now(), '{}', sha256(''))",
            approved.id,
            number,
        )

    ledger.revoke(confirmation_id=approved.id, revoker=alice, reason="No")
    assert list(approved.events.values_list("seq", flat=True)) == [1, 2, 3]
    assert check().events == 3


@proves("log:stops")
def test_whoever_sets_or_lifts_a_stop_by_hand_is_in_its_log_at_the_time_it_was(olga: User) -> None:
    asked = 'client "ä" \\ % \N{GRINNING FACE}\t'
    run(
        "INSERT INTO confirmations_halt (client_id, subject, action_pattern, action_like, reason,"
        " lift_reason, set_by_id, set_at)"
        " VALUES (%s, '', '*', '%%', '\"By hand\"', '\"\"', %s, '2020-01-01')",
        asked,
        olga.pk,
    )
    run(
        "UPDATE confirmations_halt SET lifted_at = '2020-01-01', lifted_by_id = %s, lift_reason = '\"Over\"'",
        olga.pk,
    )

    halt = Halt.objects.get()
    (stopped, lifted) = HaltEvent.objects.all()
    assert (stopped.kind, stopped.actor, stopped.at) == ("stopped", f"user {olga.pk}", halt.set_at)
    assert (lifted.kind, lifted.actor, lifted.at) == ("lifted", f"user {olga.pk}", halt.lifted_at)
    assert json.loads(stopped.detail)["client_id"] == asked
    assert halt.set_at.year > 2020 < lifted.at.year
    assert (check().halts, check().unsealed_halts) == (1, 2)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("lift_reason = '\"x\"'", "set once and lifted once"),
        ("lifted_at = now()", "halt_lifted_by_somebody"),
        ("lifted_by_id = set_by_id", "set once and lifted once"),
        ("reason = '\"x\"', lifted_at = now(), lifted_by_id = set_by_id", "set once and lifted once"),
    ],
)
def test_a_stop_changes_by_being_lifted_alone(olga: User, columns: str, says: str) -> None:
    ledger.halt(operator=olga, reason="Stop")

    with pytest.raises(IntegrityError, match=says):
        run(f"UPDATE confirmations_halt SET {columns}")

    assert check().halts == 1


def test_a_stop_is_not_set_as_lifted(olga: User) -> None:
    with pytest.raises(IntegrityError, match="set before it is lifted"):
        Halt.objects.create(
            reason="x", action_like="%", set_by=olga, lifted_by=olga, lifted_at=olga.date_joined
        )


def test_no_other_table_can_have_the_log_of_stops_written() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT has_function_privilege('pg_monitor', 'confirmations_halt_logged()', 'EXECUTE')"
        )
        assert cursor.fetchone() == (False,)


@proves("log:append-only")
def test_no_table_that_keeps_its_rows_is_emptied_at_once(agent: Principal, alice: User, olga: User) -> None:
    receipt = redeem(make_approved(agent, alice), agent)
    ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED)
    ledger.halt(operator=olga, reason="Stop")
    audit.seal(limit=10)
    with connection.cursor() as cursor:
        cursor.execute(KEPT)
        kept = sorted({table for (table,) in cursor.fetchall()})
    names = "checkpoint confirmation decision event halt haltevent outcome seal"
    confirmations = {f"confirmations_{name}" for name in names.split()}
    assert set(kept) == confirmations | {"aap_submission", "django_admin_log"}

    for table in kept:
        with pytest.raises(IntegrityError, match=f"^{table}: rows are only ever added"):
            run(f"TRUNCATE {table} CASCADE")
    with pytest.raises(IntegrityError, match="only ever added"):
        run("TRUNCATE auth_user CASCADE")

    assert Event.objects.exists()
    assert check().halts == 1

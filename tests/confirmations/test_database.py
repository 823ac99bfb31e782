"""What Postgres holds, whoever writes."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction

from confirmhub.confirmations import ledger
from confirmhub.confirmations.migrations import __path__ as migrations
from confirmhub.confirmations.models import Confirmation, Decision, Event, Outcome
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import EDGES, Result, Status
from tests.factories import decide, make_approved, make_pending, redeem
from tests.invariants import proves

ASKED = {
    "requester_client_id": "other",
    "requester_subject": "4711",
    "audience": "https://other.example",
    "action": "other",
    "arguments": "{}",
    "digest": bytes(32),
    "summary": "other",
    "facts": '[["a", "b"]]',
    "fingerprint": "other",
    "question": "other",
    "view_digest": bytes(32),
    "idempotency_key": "other",
    "policy": "other",
    "tool_digest": bytes(32),
    "self_approval": True,
    "sign_in_within": dt.timedelta(1),
    "approvals_needed": 2,
    "assurance": "host",
    "remind_at": dt.datetime(2030, 1, 1, tzinfo=dt.UTC),
}


@proves("rows:asked-is-fixed")
@pytest.mark.parametrize("column", ASKED)
def test_what_was_asked_cannot_be_changed(agent: Principal, column: str) -> None:
    pending = make_pending(agent)

    with pytest.raises(IntegrityError, match="what was asked is fixed"):
        Confirmation.objects.filter(id=pending.id).update(**{column: ASKED[column]})


@proves("rows:edges")
def test_no_status_is_reached_but_along_the_edges(agent: Principal, alice: User) -> None:
    rows = {Status.PENDING: make_pending(agent)}
    for source in (Status.PENDING, Status.APPROVED, Status.REDEEMED):
        if source is Status.APPROVED:
            rows[source] = decide(rows[Status.PENDING], alice)
        if source is Status.REDEEMED:
            redeem(rows[Status.APPROVED], agent)
        for target in set(Status) - {source} - {t for s, t in EDGES if s == source}:
            with pytest.raises(IntegrityError, match="no way from"), transaction.atomic():
                Confirmation.objects.filter(id=rows[Status.PENDING].id).update(status=target)


def test_the_database_knows_exactly_the_edges() -> None:
    text = Path(next(iter(migrations)), "0002_rows_hold_the_rules.py").read_text(encoding="utf-8")

    assert {tuple(edge) for edge in re.findall(r"'(\w+)>(\w+)'", text)} == EDGES


def test_nothing_is_approved_without_a_decision_on_what_was_shown(agent: Principal, alice: User) -> None:
    pending = make_pending(agent)
    approve = {"status": "approved", "settled_at": pending.requested_at, "redeem_by": pending.decide_by}

    with pytest.raises(IntegrityError, match="not enough approvals"), transaction.atomic():
        Confirmation.objects.filter(id=pending.id).update(**approve)
    Decision.objects.create(
        confirmation=pending, approver=alice, verdict="approve", view_digest=bytes(32), renderer="x"
    )
    with pytest.raises(IntegrityError, match="not enough approvals"):
        Confirmation.objects.filter(id=pending.id).update(**approve)


def test_a_deadline_or_a_key_cannot_be_slipped_in(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    with pytest.raises(IntegrityError, match="nothing changes without a move"):
        Confirmation.objects.filter(id=approved.id).update(redeem_by=approved.decide_by)


def test_a_temporary_table_cannot_stand_in_for_the_decisions(agent: Principal) -> None:
    pending = make_pending(agent)
    approve = {"status": "approved", "settled_at": pending.requested_at, "redeem_by": pending.decide_by}

    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE confirmations_decision AS SELECT id AS confirmation_id,"
            " 'approve' AS verdict, view_digest FROM confirmations_confirmation"
        )
    with pytest.raises(IntegrityError, match="not enough approvals"):
        Confirmation.objects.filter(id=pending.id).update(**approve)


def test_the_head_of_a_log_moves_with_an_event_alone(agent: Principal) -> None:
    pending = make_pending(agent)

    with pytest.raises(IntegrityError, match="events are only ever added"):
        Confirmation.objects.filter(id=pending.id).update(event_head=bytes(32))


def test_nobody_says_when_something_was_asked(agent: Principal) -> None:
    row = make_pending(agent)
    asked, row.pk, row.status, row.event_count = row.requested_at, None, Status.PENDING, 0
    row.digest, row.requested_at, row.event_head = bytes(32), asked - dt.timedelta(days=400), b""

    row.save(force_insert=True)

    row.refresh_from_db()
    assert row.requested_at >= asked


def test_no_row_begins_elsewhere_than_pending(agent: Principal) -> None:
    row = make_pending(agent)
    row.pk, row.status, row.settled_at = None, Status.DENIED, row.requested_at

    with pytest.raises(IntegrityError, match="begins pending"):
        row.save(force_insert=True)


@proves("log:append-only")
@pytest.mark.parametrize("model", [Event, Decision, Outcome])
def test_events_decisions_and_outcomes_are_only_ever_added(
    agent: Principal, alice: User, model: type[Event | Decision | Outcome]
) -> None:
    receipt = redeem(make_approved(agent, alice), agent)
    ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED)
    column = {Event: "kind", Decision: "verdict", Outcome: "result"}[model]

    with pytest.raises(IntegrityError, match="only ever added"), transaction.atomic():
        model.objects.update(**{column: "failed"})
    with pytest.raises(IntegrityError, match="only ever added"), transaction.atomic():
        model.objects.all()._raw_delete("default")

    assert model.objects.exists()


@proves("log:chained")
def test_each_event_holds_the_hash_of_the_one_before(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    ledger.report_outcome(receipt=redeem(approved, agent), result=Result.SUCCEEDED, detail="ä\x00\ud800")

    before = b""
    for event in approved.events.order_by("seq"):
        micros = round(event.at.timestamp() * 1_000_000)
        parts = [
            before.hex(),
            str(approved.id),
            str(event.seq),
            event.kind,
            event.actor,
            str(micros),
            event.detail,
        ]
        text = ",".join(f"{len(part)}:{part}" for part in parts)
        before = hashlib.sha256(text.encode()).digest()
        assert bytes(event.hash) == before
    approved.refresh_from_db()
    assert bytes(approved.event_head) == before
    assert approved.event_count == 4


def test_the_guards_can_be_taken_down_and_set_up_again(transactional_db: None) -> None:
    from django.core.management import call_command

    call_command("migrate", "confirmations", "0001", verbosity=0)
    call_command("migrate", verbosity=0)

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'confirmations%%'")
        assert cursor.fetchone() == (25,)

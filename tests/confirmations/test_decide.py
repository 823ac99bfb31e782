"""Deciding, taking back, and what comes of it."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from dataclasses import replace

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models.functions import Now

from confirmhub.confirmations import errors, ledger, queries
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result, Status, Verdict
from tests.confirmations.clock import make_overdue
from tests.factories import TRANSFER, decide, kinds_of_events, make_approved, make_pending, make_user, redeem
from tests.invariants import proves


def test_an_approval_can_be_redeemed_for_five_minutes(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    assert approved.status == Status.APPROVED
    assert approved.settled_at is not None
    assert approved.redeem_by is not None
    assert approved.redeem_by - approved.settled_at == dt.timedelta(minutes=5)


def test_a_denial_settles_it_with_its_reason(agent: Principal, alice: User) -> None:
    denied = decide(make_pending(agent), alice, Verdict.DENY, reason="no")

    assert (denied.status, denied.settled_reason) == (Status.DENIED, "no")
    assert kinds_of_events(denied) == ["requested", "deny"]


@pytest.mark.parametrize("verdict", Verdict)
def test_a_decision_is_recorded_with_who_and_when(agent: Principal, alice: User, verdict: Verdict) -> None:
    pending = make_pending(agent)

    settled = decide(pending, alice, verdict, reason="so be it")

    decision, event = settled.decisions.get(), settled.events.get(kind=verdict)
    assert (decision.approver, decision.verdict, decision.reason) == (alice, verdict, "so be it")
    assert pending.requested_at < decision.decided_at <= event.at
    assert event.actor == f"user {alice.pk}"
    assert json.loads(event.detail)["reason"] == "so be it"


def test_the_same_verdict_again_changes_nothing(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    assert decide(approved, alice).status == Status.APPROVED
    assert approved.decisions.count() == 1
    assert kinds_of_events(approved) == ["requested", "approve"]


def test_the_other_verdict_afterwards_is_refused(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    with pytest.raises(errors.AlreadyDecided):
        decide(approved, alice, Verdict.DENY)

    assert queries.get_for_requester(confirmation_id=approved.id, requester=agent).status == Status.APPROVED


@proves("decide:own")
def test_to_somebody_else_a_confirmation_does_not_exist(agent: Principal, bob: User) -> None:
    pending = make_pending(agent)
    root = make_user("root", is_superuser=True, is_staff=True)

    for stranger in (bob, root):
        with pytest.raises(errors.NotFound):
            decide(pending, stranger)
        with pytest.raises(errors.NotFound):
            queries.get_for_approver(confirmation_id=pending.id, approver=stranger)

    assert not pending.decisions.exists()


def test_a_deactivated_approver_decides_nothing(agent: Principal, alice: User) -> None:
    pending = make_pending(agent)
    alice.is_active = False
    alice.save()

    with pytest.raises(errors.NotFound):
        decide(pending, alice)


@proves("decide:seen")
@pytest.mark.parametrize("shown", ["", "0" * 64, "\x00", "ä"])
def test_a_decision_on_another_screen_is_refused(agent: Principal, alice: User, shown: str) -> None:
    pending = make_pending(agent)

    with pytest.raises(errors.ViewChanged):
        ledger.decide(confirmation_id=pending.id, approver=alice, verdict=Verdict.APPROVE, digest_shown=shown)

    assert not pending.decisions.exists()


def test_a_late_decision_is_refused_before_the_sweeper_ran(agent: Principal, alice: User) -> None:
    pending = make_pending(agent)
    make_overdue(pending, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

    with pytest.raises(errors.AlreadyDecided):
        decide(pending, alice)

    assert queries.get_for_approver(confirmation_id=pending.id, approver=alice).effective_status == "expired"


def test_too_long_a_reason_is_refused(agent: Principal, alice: User) -> None:
    with pytest.raises(errors.InvalidAction, match="280"):
        decide(make_pending(agent), alice, reason="x" * 281)


def test_an_unknown_confirmation_is_not_found(alice: User, agent: Principal) -> None:
    nothing = uuid.uuid4()

    with pytest.raises(errors.NotFound):
        ledger.decide(confirmation_id=nothing, approver=alice, verdict=Verdict.DENY, digest_shown="")
    with pytest.raises(errors.NotFound):
        ledger.cancel(confirmation_id=nothing, requester=agent)
    for revoker in (alice, agent):
        with pytest.raises(errors.NotFound):
            ledger.revoke(confirmation_id=nothing, revoker=revoker, reason="")


def test_only_its_requester_cancels_a_question(agent: Principal) -> None:
    pending = make_pending(agent)

    with pytest.raises(errors.NotFound):
        ledger.cancel(confirmation_id=pending.id, requester=replace(agent, client_id="other"))
    ledger.cancel(confirmation_id=pending.id, requester=agent)

    pending.refresh_from_db()
    assert pending.status == Status.CANCELLED
    with pytest.raises(errors.Cancelled):
        ledger.cancel(confirmation_id=pending.id, requester=agent)


def test_what_is_decided_can_no_longer_be_cancelled(agent: Principal, alice: User) -> None:
    with pytest.raises(errors.AlreadyDecided):
        ledger.cancel(confirmation_id=make_approved(agent, alice).id, requester=agent)


def test_an_approval_is_revoked_by_requester_approver_and_operator_and_by_nobody_else(
    agent: Principal, alice: User, bob: User
) -> None:
    operator = make_user("operator")
    operator.user_permissions.add(Permission.objects.get(codename="change_confirmation"))
    for revoker in (agent, alice, operator):
        approved = make_approved(agent, alice)
        with pytest.raises(errors.NotFound):
            ledger.revoke(confirmation_id=approved.id, revoker=bob, reason="mine now")

        ledger.revoke(confirmation_id=approved.id, revoker=revoker, reason="stop")

        approved.refresh_from_db()
        assert (approved.status, approved.settled_reason) == (Status.REVOKED, "stop")


def test_what_is_spent_or_pending_is_not_revoked(agent: Principal, alice: User) -> None:
    pending = make_pending(agent)
    with pytest.raises(errors.Pending):
        ledger.revoke(confirmation_id=pending.id, revoker=alice, reason="")

    redeem(decide(pending, alice), agent)

    with pytest.raises(errors.AlreadyRedeemed):
        ledger.revoke(confirmation_id=pending.id, revoker=alice, reason="")


def test_an_outcome_is_reported_once_and_the_same_again_changes_nothing(
    agent: Principal, alice: User
) -> None:
    approved = make_approved(agent, alice)
    receipt = redeem(approved, agent)

    ledger.report_outcome(receipt=receipt, result=Result.FAILED, detail="disk \x00 full")
    ledger.report_outcome(receipt=receipt, result=Result.FAILED, detail="again")

    with pytest.raises(errors.AlreadyReported):
        ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED)
    approved.refresh_from_db()
    assert (approved.outcome.result, approved.outcome.detail) == (Result.FAILED, "disk \x00 full")
    assert kinds_of_events(approved)[-1:] == ["failed"]


def test_an_outcome_without_its_receipt_is_refused(agent: Principal, alice: User) -> None:
    receipt = redeem(make_approved(agent, alice), agent)

    with pytest.raises(errors.NotFound):
        ledger.report_outcome(receipt=replace(receipt, redemption_key="guessed"), result=Result.SUCCEEDED)


def test_a_long_outcome_is_cut_visibly(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    ledger.report_outcome(receipt=redeem(approved, agent), result=Result.FAILED, detail="x" * 10_000)

    approved.refresh_from_db()
    assert len(approved.outcome.detail) <= 2_000
    assert "more, sha256" in approved.outcome.detail


def test_the_sweeper_expires_what_is_overdue_and_nothing_else(agent: Principal, alice: User) -> None:
    due = make_overdue(make_approved(agent, alice), redeem_by=Now())
    make_pending(agent, action=replace(TRANSFER, name="open"))
    late = make_pending(agent, action=replace(TRANSFER, name="late"))
    make_overdue(late, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

    assert ledger.expire_due(limit=1) == 1
    assert ledger.expire_due(limit=10) == 1
    assert ledger.expire_due(limit=10) == 0

    for row in (due, late):
        row.refresh_from_db()
        assert row.status == Status.EXPIRED
        assert kinds_of_events(row)[-1:] == ["expired"]

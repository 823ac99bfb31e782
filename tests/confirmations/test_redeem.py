"""Spending a yes: once, by the one who asked, for that action, in time."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from confirmhub.confirmations import errors, ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result, Status, Verdict
from tests.confirmations.clock import make_overdue, standing_at
from tests.factories import (
    ARGUMENTS,
    TRANSFER,
    decide,
    kinds_of_events,
    make_approved,
    make_pending,
    redeem,
)
from tests.invariants import proves


def test_an_approved_confirmation_is_redeemed(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    receipt = redeem(approved, agent)

    approved.refresh_from_db()
    assert receipt.confirmation_id == approved.id
    assert receipt.digest == bytes(approved.digest).hex()
    assert not receipt.replayed
    assert receipt.redeemed_at == approved.redeemed_at
    assert approved.status == Status.REDEEMED
    assert kinds_of_events(approved) == ["requested", "approve", "redeemed"]


def test_a_second_redemption_is_refused_with_the_time_of_the_first(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    first = redeem(approved, agent)

    with pytest.raises(errors.AlreadyRedeemed) as refusal:
        redeem(approved, agent)

    assert refusal.value.redeemed_at == first.redeemed_at
    assert kinds_of_events(approved).count("redeemed") == 1


@proves("redeem:replay")
def test_the_same_key_gets_the_same_receipt_and_the_recorded_outcome(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    first = redeem(approved, agent, key="k1")
    unknown = redeem(approved, agent, key="k1")
    ledger.report_outcome(receipt=first, result=Result.SUCCEEDED, detail="paid")

    again = redeem(approved, agent, key="k1")

    assert unknown == replace(first, replayed=True)
    assert again == replace(first, replayed=True, result=Result.SUCCEEDED, detail="paid")
    assert kinds_of_events(approved).count("redeemed") == 1


@proves("redeem:exact")
@pytest.mark.parametrize(
    "action",
    [
        pytest.param(replace(TRANSFER, name="payments.refund"), id="other-name"),
        pytest.param(replace(TRANSFER, audience="https://other.example"), id="other-audience"),
        pytest.param(replace(TRANSFER, arguments=ARGUMENTS | {"cents": 12_51}), id="one-cent-more"),
        pytest.param(replace(TRANSFER, arguments=ARGUMENTS | {"cents": 1250.0}), id="other-type"),
        pytest.param(replace(TRANSFER, arguments=ARGUMENTS | {"memo": ""}), id="one-argument-more"),
        pytest.param(replace(TRANSFER, tool_digest=bytes(32)), id="other-tool-definition"),
    ],
)
def test_a_yes_to_one_action_is_no_yes_to_another(agent: Principal, alice: User, action: Action) -> None:
    approved = make_approved(agent, alice)

    with pytest.raises(errors.ActionDiffers):
        redeem(approved, agent, action=action)

    approved.refresh_from_db()
    assert approved.status == Status.APPROVED


@proves("redeem:own")
@pytest.mark.parametrize("part", ["client_id", "subject"])
def test_nobody_but_the_requester_redeems(agent: Principal, alice: User, part: str) -> None:
    approved = make_approved(agent, alice)

    with pytest.raises(errors.NotFound):
        redeem(approved, replace(agent, **{part: "4711"}))

    approved.refresh_from_db()
    assert approved.status == Status.APPROVED


def test_a_pending_confirmation_is_refused_with_when_to_come_back(agent: Principal) -> None:
    pending = make_pending(agent)

    with pytest.raises(errors.Pending) as refusal:
        redeem(pending, agent)

    assert refusal.value.retry_after > 0


def test_a_denied_confirmation_is_refused_with_the_reason(agent: Principal, alice: User) -> None:
    denied = decide(make_pending(agent), alice, Verdict.DENY, reason="not \ud800today\x00")

    with pytest.raises(errors.Denied) as refusal:
        redeem(denied, agent)

    assert refusal.value.reason == "not \ud800today\x00"


def test_a_cancelled_confirmation_is_refused_as_cancelled(agent: Principal) -> None:
    pending = make_pending(agent)
    ledger.cancel(confirmation_id=pending.id, requester=agent)

    with pytest.raises(errors.Cancelled):
        redeem(pending, agent)


def test_a_revoked_confirmation_is_refused_with_the_reason(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    ledger.revoke(confirmation_id=approved.id, revoker=alice, reason="changed my mind")

    with pytest.raises(errors.Revoked) as refusal:
        redeem(approved, agent)

    assert refusal.value.reason == "changed my mind"


@proves("redeem:in-time")
def test_a_late_redemption_is_refused_before_the_sweeper_ran(agent: Principal, alice: User) -> None:
    approved = make_overdue(make_approved(agent, alice), redeem_by=Now() - dt.timedelta(microseconds=1))

    with pytest.raises(errors.Expired):
        redeem(approved, agent)

    approved.refresh_from_db()
    assert approved.status == Status.APPROVED


@proves("redeem:in-time")
def test_the_last_moment_before_the_deadline_is_in_time_and_the_deadline_is_not(
    agent: Principal, alice: User
) -> None:
    approved = make_approved(agent, alice)
    assert approved.redeem_by is not None
    last = approved.redeem_by - dt.timedelta(microseconds=1)

    with standing_at(approved.redeem_by), pytest.raises(errors.Expired):
        redeem(approved, agent)
    with standing_at(last):
        assert redeem(approved, agent).redeemed_at == last


def test_an_unknown_confirmation_is_not_redeemed(agent: Principal, alice: User) -> None:
    make_approved(agent, alice)

    with pytest.raises(errors.NotFound):
        ledger.redeem(
            confirmation_id=uuid.uuid4(), requester=agent, action=TRANSFER, redemption_key="attempt-1"
        )


def test_spending_one_leaves_the_others_as_they_are(agent: Principal, alice: User) -> None:
    other = replace(TRANSFER, arguments=ARGUMENTS | {"cents": 1})
    first, second = make_approved(agent, alice), make_approved(agent, alice, action=other)

    redeem(first, agent)

    second.refresh_from_db()
    assert second.status == Status.APPROVED
    assert not redeem(second, agent, action=other).replayed


def test_a_redemption_is_one_statement_and_tidies_nothing(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    overdue = make_pending(agent, action=replace(TRANSFER, name="overdue"))
    make_overdue(overdue, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

    with CaptureQueriesContext(connection) as asked:
        redeem(approved, agent)

    overdue.refresh_from_db()
    assert overdue.status == Status.PENDING
    assert sum("SAVEPOINT" not in query["sql"] for query in asked) == 1


@pytest.mark.parametrize("key", ["", "two words", "ä", "x" * 201, "\x00"])
def test_a_malformed_redemption_key_is_refused(agent: Principal, alice: User, key: str) -> None:
    approved = make_approved(agent, alice)

    with pytest.raises(errors.InvalidAction, match="redemption key"):
        ledger.redeem(confirmation_id=approved.id, requester=agent, action=TRANSFER, redemption_key=key)


@proves("redeem:durable")
@pytest.mark.django_db(transaction=True)
def test_a_redemption_cannot_be_part_of_a_larger_transaction(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        redeem(approved, agent)

    approved.refresh_from_db()
    assert approved.status == Status.APPROVED


@pytest.mark.parametrize("hours", [-1, 1])
def test_an_application_whose_clock_is_an_hour_wrong_keeps_postgres_time(
    agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    now, ns = timezone.now, time.time_ns
    monkeypatch.setattr(timezone, "now", lambda: now() + dt.timedelta(hours=hours))
    monkeypatch.setattr(time, "time_ns", lambda: ns() + hours * 3_600 * 10**9)

    receipt = redeem(make_approved(agent, alice), agent)

    assert abs(receipt.redeemed_at - now()) < dt.timedelta(minutes=1)

"""What is counted for operators: of the right time, once, and never more rows than a bound."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now

from confirmhub.confirmations import errors, figures, ledger, outbox
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.figures import Counts, Decided, Span
from confirmhub.confirmations.models import Confirmation, Decision
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result, Verdict
from tests.confirmations.clock import make_overdue
from tests.factories import AUDIENCE, decide, make_approved, make_pending, principal_for, redeem

HOUR, MINUTE = dt.timedelta(hours=1), dt.timedelta(minutes=1)


def an_hour() -> Span:
    return figures.span(within=HOUR, step=5 * MINUTE)


def decided() -> Decided:
    return figures.decided(during=an_hour())


def count() -> Counts:
    return figures.count(during=an_hour(), reports_within=2 * MINUTE)


def answer(
    agent: Principal, approver: User, number: int, *, after: dt.timedelta, verdict: Verdict = Verdict.APPROVE
) -> Confirmation:
    """A question that was asked so long ago, and is decided on now."""
    asked = make_pending(agent, action=Action(AUDIENCE, "run", {"number": number}))
    return decide(make_overdue(asked, requested_at=Now() - after), approver, verdict)


def test_a_span_begins_at_a_round_time_and_ends_now() -> None:
    during = figures.Span(
        since=dt.datetime(2026, 1, 1, 9, 55, tzinfo=dt.UTC),
        until=dt.datetime(2026, 1, 1, 10, 6, tzinfo=dt.UTC),
        step=5 * MINUTE,
    )

    assert [f"{begins:%H:%M}" for begins in during.slots] == ["09:55", "10:00", "10:05"]


@pytest.mark.django_db
def test_a_span_covers_all_that_is_asked_for() -> None:
    during = an_hour()

    assert during.since.minute % 5 == during.since.second == 0
    assert HOUR <= during.until - during.since < HOUR + during.step
    assert during.slots[-1] <= during.until < during.slots[-1] + during.step


def test_decisions_are_told_by_action_person_client_time_and_haste(
    agent: Principal, alice: User, bob: User
) -> None:
    answer(agent, alice, 1, after=dt.timedelta())
    answer(agent, alice, 2, after=2 * MINUTE)
    answer(principal_for(bob, client_id="other"), bob, 3, after=8 * MINUTE, verdict=Verdict.DENY)

    found = decided()

    assert found.every == 1
    assert found.total is not None
    assert (found.total.decided, found.total.approved, found.total.quick) == (3, 2, 1)
    assert 2 * MINUTE <= found.total.median < 3 * MINUTE
    assert [(each.key, each.decided, each.approved, each.quick) for each in found.approvers] == [
        (alice.pk, 2, 2, 1),
        (bob.pk, 1, 0, 0),
    ]
    assert [(each.key, each.decided) for each in found.actions] == [("run", 3)]
    assert {each.key: each.approved for each in found.clients} == {agent.client_id: 2, "other": 0}
    assert {band: each.decided for band, each in found.bands.items()} == {0: 1, 3: 1, 4: 1}
    assert sum(each.decided for each in found.slots.values()) == 3
    assert set(found.slots) <= set(an_hour().slots)


def test_a_quick_denial_is_no_quick_approval(agent: Principal, alice: User) -> None:
    answer(agent, alice, 1, after=dt.timedelta(), verdict=Verdict.DENY)

    assert [each.quick for each in decided().approvers] == [0]


def test_what_was_decided_before_is_not_counted(agent: Principal, alice: User) -> None:
    make_approved(agent, alice)
    after = Decision.objects.get().decided_at + dt.timedelta(microseconds=1)

    found = figures.decided(during=Span(after, after + HOUR, MINUTE))

    assert (found.total, found.actions, found.slots) == (None, [], {})


def test_of_many_decisions_some_are_looked_at_and_stand_for_all(
    agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "LOOKED_AT", 4)
    for number in range(16):
        answer(agent, alice, number, after=dt.timedelta())

    found = decided()

    assert found.every == 4
    assert found.total is not None
    # One of each four, where a four may reach out of what there is.
    assert found.total.decided in (12, 16, 20)
    assert [each.decided for each in found.approvers] == [found.total.decided]


def test_what_waits_is_counted_with_the_first_of_it(agent: Principal) -> None:
    first = make_pending(agent)
    make_pending(agent, action=Action(AUDIENCE, "run", {}))

    found = count()

    assert (found.waiting, found.waiting_since) == (2, first.requested_at)
    assert (found.unanswered, found.without_outcome, found.given_up) == (0, 0, 0)


def test_what_nobody_answered_is_counted_before_and_after_it_is_tidied(agent: Principal) -> None:
    asked = make_pending(agent)
    make_overdue(asked, requested_at=Now() - 2 * MINUTE, decide_by=Now() - MINUTE)

    before = count()
    ledger.expire_due(limit=10)
    after = count()

    assert before == after
    assert (after.waiting, after.unanswered, after.unanswered_and_untold) == (0, 1, 1)


def test_who_was_told_and_did_not_answer_is_told_apart(agent: Principal) -> None:
    asked = make_pending(agent)
    [notice] = outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL)
    outbox.mark_sent(notice_id=notice.id)
    make_overdue(asked, requested_at=Now() - 2 * MINUTE, decide_by=Now() - MINUTE)

    found = count()

    assert (found.unanswered, found.unanswered_and_untold) == (1, 0)


def test_a_yes_that_was_not_used_is_not_unanswered(agent: Principal, alice: User) -> None:
    make_overdue(
        make_approved(agent, alice),
        requested_at=Now() - 3 * MINUTE,
        decide_by=Now() - 2 * MINUTE,
        redeem_by=Now() - MINUTE,
    )
    ledger.expire_due(limit=10)

    assert Confirmation.objects.get().status == "expired"
    assert count().unanswered == 0


def test_what_was_redeemed_and_not_reported_is_counted_when_it_is_late(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    receipt = redeem(approved, agent)

    early = count()
    make_overdue(approved, redeemed_at=Now() - 3 * MINUTE)
    late = count()
    ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED)

    assert (early.without_outcome, late.without_outcome, count().without_outcome) == (0, 1, 0)


def test_a_notice_that_was_given_up_is_counted(agent: Principal) -> None:
    make_pending(agent)
    [notice] = outbox.lease_notices(limit=10, lease=MINUTE, lane=outbox.Lane.MAIL)
    outbox.mark_failed(notice_id=notice.id, retry_in=MINUTE, give_up_after=1)

    assert count().given_up == 1


@pytest.mark.django_db(transaction=True)
def test_refused_redemptions_are_counted_by_their_reason(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    redeem(approved, agent)
    for _ in range(2):
        with pytest.raises(errors.AlreadyRedeemed):
            redeem(approved, agent)
    with pytest.raises(errors.ActionDiffers):
        redeem(approved, agent, action=Action(AUDIENCE, "other", {}))

    assert figures.refused(during=an_hour()) == {"already_redeemed": 2, "action_differs": 1}


def test_nothing_is_counted_beyond_the_bound(agent: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "COUNTED", 2)
    for number in range(3):
        make_pending(agent, action=Action(AUDIENCE, "run", {"number": number}))

    assert count().waiting == 2

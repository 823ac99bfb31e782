"""What happens while nobody decides: people are told again, and others are asked too."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries

from confirmhub.confirmations import audit, errors, evidence, ledger, outbox, queries
from confirmhub.confirmations.models import Confirmation, Hook, Notice
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Assurance, Mode, Result, Status, Verdict
from tests.confirmations.clock import make_overdue
from tests.confirmations.test_rules import make_rule
from tests.factories import (
    TRANSFER,
    decide,
    kinds_of_events,
    make_approved,
    make_pending,
    make_user,
    redeem,
)
from tests.invariants import proves

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def team(db: None, alice: User) -> list[User]:
    """The first group of three: carol, dora, and alice, whose agent asks."""
    people = [make_user("carol"), make_user("dora"), alice]
    Group.objects.create(name="first").user_set.set(people)
    return people


@pytest.fixture
def boss(db: None) -> User:
    """The only member of the second group."""
    person = make_user("boss")
    Group.objects.create(name="second").user_set.add(person)
    return person


def escalating(**fields: object) -> None:
    make_rule(
        Mode.APPROVE,
        approver_group=Group.objects.get(name="first"),
        escalate_after=MINUTE,
        escalation_group=Group.objects.get(name="second"),
        **fields,
    )


def told(confirmation: Confirmation) -> set[tuple[str, int | None]]:
    return set(confirmation.notices.values_list("kind", "recipient_id"))


def let(confirmation: Confirmation, **times: object) -> None:
    """Let a time that was set when it was asked be past."""
    make_overdue(confirmation, **times)


def test_those_who_have_not_decided_are_told_again_once(agent: Principal, team: list[User]) -> None:
    carol, dora, alice = team
    make_rule(
        Mode.APPROVE,
        approver_group=Group.objects.get(name="first"),
        approvals_needed=2,
        remind_before=MINUTE,
        self_approval=True,
    )
    pending = make_pending(agent)
    assert pending.remind_at == pending.decide_by - MINUTE
    decide(pending, carol)
    assert ledger.remind_due(limit=10) == 0

    let(pending, remind_at=Now())

    assert (ledger.remind_due(limit=10), ledger.remind_due(limit=10)) == (1, 0)
    assert {n for n in told(pending) if n[0] == "reminder"} == {("reminder", dora.pk), ("reminder", alice.pk)}
    assert kinds_of_events(pending) == ["requested", "approve", "reminded"]
    audit.seal(limit=10)
    evidence.check(audit._everything())


@pytest.mark.parametrize("after", ["settled", "overdue"])
def test_nobody_is_reminded_of_what_no_longer_waits(agent: Principal, alice: User, after: str) -> None:
    make_rule(Mode.CONFIRM, remind_before=MINUTE)
    pending = make_pending(agent)
    let(pending, remind_at=Now())
    if after == "settled":
        decide(pending, alice, Verdict.DENY)
    else:
        let(pending, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

    assert ledger.remind_due(limit=10) == 0


def test_a_reminder_longer_than_the_question_waits_is_none(agent: Principal) -> None:
    make_rule(Mode.CONFIRM, remind_before=dt.timedelta(hours=1))

    assert make_pending(agent).remind_at is None


def test_the_next_group_decides_once_it_was_asked_and_not_before(
    agent: Principal, team: list[User], boss: User
) -> None:
    escalating()
    pending = make_pending(agent)
    with pytest.raises(errors.NotFound):
        decide(pending, boss)
    assert ledger.escalate_due(limit=10) == 0

    let(pending, escalate_at=Now())

    assert (ledger.escalate_due(limit=10), ledger.escalate_due(limit=10)) == (1, 0)
    assert ("escalated", boss.pk) in told(pending)
    assert [row.id for row in queries.list_waiting_for(approver=boss)] == [pending.id]
    assert [row.id for row in queries.list_waiting_for(approver=team[0])] == [pending.id]
    assert decide(pending, boss).status == Status.APPROVED
    assert kinds_of_events(pending) == ["requested", "escalated", "approve"]
    assert [row.id for row in queries.list_settled_for(approver=boss, limit=10)] == [pending.id]
    audit.seal(limit=10)
    evidence.check(audit._everything())


def test_who_was_asked_before_is_not_told_that_it_was_passed_on(
    agent: Principal, team: list[User], boss: User
) -> None:
    Group.objects.get(name="second").user_set.add(team[0])
    escalating()
    pending = make_pending(agent)
    let(pending, escalate_at=Now())

    ledger.escalate_due(limit=10)

    assert {notice for notice in told(pending) if notice[0] == "escalated"} == {("escalated", boss.pk)}


def test_many_are_taken_at_once(
    agent: Principal, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_rule(Mode.CONFIRM, remind_before=MINUTE)
    for number in range(3):
        let(make_pending(agent, action=replace(TRANSFER, arguments={"number": number})), remind_at=Now())

    # Three for all; for each the people, their notices and the log; and two around the transaction.
    with django_assert_num_queries(3 + 3 * 3 + 2):
        assert ledger.remind_due(limit=10) == 3


def test_escalation_lets_nobody_approve_for_themselves(
    agent: Principal, team: list[User], alice: User
) -> None:
    Group.objects.create(name="second").user_set.add(alice)
    escalating()
    pending = make_pending(agent)
    let(pending, escalate_at=Now())
    ledger.escalate_due(limit=10)

    assert ("escalated", alice.pk) not in told(pending)
    with pytest.raises(errors.NotApprover):
        decide(pending, alice)


def test_an_escalation_is_not_written_by_hand(agent: Principal, team: list[User], boss: User) -> None:
    escalating()
    pending = make_pending(agent)
    decide(pending, team[0], Verdict.DENY)

    with pytest.raises(IntegrityError, match="not taken back"), transaction.atomic():
        Confirmation.objects.filter(id=pending.id).update(escalated_at=Now())


def test_a_host_answers_for_its_person_where_the_policy_takes_its_word(agent: Principal, alice: User) -> None:
    make_rule(Mode.CONFIRM, assurance=Assurance.HOST)
    pending = make_pending(agent)

    settled = by_host(pending, agent)

    assert settled.status == Status.APPROVED
    decision = settled.decisions.get()
    assert (decision.approver, decision.assurance) == (alice, Assurance.HOST)
    assert '"assurance":"host"' in settled.events.order_by("seq").last().detail
    assert not redeem(settled, agent).replayed


def by_host(
    confirmation: Confirmation, requester: Principal, verdict: Verdict = Verdict.APPROVE, *, shown: str = ""
) -> Confirmation:
    return ledger.answer_by_host(
        confirmation_id=confirmation.id,
        requester=requester,
        verdict=verdict,
        digest_shown=shown or bytes(confirmation.view_digest).hex(),
    )


@proves("decide:assured")
@pytest.mark.parametrize("verdict", Verdict)
def test_a_host_answers_nothing_where_the_policy_wants_the_page(
    agent: Principal, alice: User, verdict: Verdict
) -> None:
    pending = make_pending(agent)

    with pytest.raises(errors.PageNeeded):
        by_host(pending, agent, verdict)

    pending.refresh_from_db()
    assert pending.status == Status.PENDING
    assert decide(pending, alice).decisions.get().assurance == Assurance.PAGE


def test_a_host_answers_for_nobody_else_and_for_nothing_else(agent: Principal, bob: User) -> None:
    make_rule(Mode.CONFIRM, assurance=Assurance.HOST)
    pending = make_pending(agent)

    with pytest.raises(errors.NotFound):
        by_host(pending, Principal(client_id=agent.client_id, subject=str(bob.pk)))
    with pytest.raises(errors.NotFound):
        by_host(pending, Principal(client_id="other", subject=agent.subject))
    with pytest.raises(errors.ViewChanged):
        by_host(pending, agent, shown="0" * 64)


def test_the_database_counts_no_hosts_word_where_the_page_is_wanted(agent: Principal, alice: User) -> None:
    pending = make_pending(agent)
    pending.decisions.create(
        approver=alice,
        verdict=Verdict.APPROVE,
        view_digest=pending.view_digest,
        renderer="x",
        assurance=Assurance.HOST,
    )

    with pytest.raises(IntegrityError, match="not enough approvals"):
        Confirmation.objects.filter(id=pending.id).update(
            status="approved", settled_at=pending.requested_at, redeem_by=pending.decide_by
        )


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": Mode.ALLOW, "assurance": Assurance.HOST},
        {"mode": Mode.CONFIRM, "assurance": Assurance.HOST, "sign_in_within": MINUTE},
        {"mode": Mode.CONFIRM, "escalate_after": MINUTE},
        {"mode": Mode.CONFIRM, "remind_before": dt.timedelta()},
        {"mode": Mode.CONFIRM, "assurance": "other"},
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused(db: None, fields: dict[str, object]) -> None:
    with pytest.raises(IntegrityError):
        make_rule(**fields)


def test_a_service_with_a_hook_hears_what_became_of_its_own(agent: Principal, alice: User) -> None:
    hook = Hook.objects.create(client_id=agent.client_id, url="https://x.example/", secrets="s")
    Hook.objects.create(client_id="other", url="https://y.example/", secrets="s")
    approved = make_approved(agent, alice)
    ledger.report_outcome(receipt=redeem(approved, agent), result=Result.SUCCEEDED)

    assert list(approved.notices.filter(hook=hook).order_by("id").values_list("kind", flat=True)) == [
        "settled",
        "outcome",
    ]
    assert not Notice.objects.filter(hook__client_id="other").exists()


@pytest.mark.parametrize(
    ("ending", "kinds"),
    [
        ("cancel", ["settled"]),
        ("expire", ["settled"]),
        ("revoke", ["settled", "revoked"]),
        ("lapse", ["settled", "lapsed"]),
    ],
)
def test_a_service_hears_of_every_ending(
    agent: Principal, alice: User, ending: str, kinds: list[str]
) -> None:
    hook = Hook.objects.create(client_id=agent.client_id, url="https://x.example/", secrets="s")
    row = make_pending(agent)
    if ending == "cancel":
        ledger.cancel(confirmation_id=row.id, requester=agent)
    elif ending == "expire":
        let(row, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))
        ledger.expire_due(limit=10)
    else:
        decide(row, alice)
        if ending == "revoke":
            ledger.revoke(confirmation_id=row.id, revoker=agent, reason="r")
        else:
            let(row, redeem_by=Now())
            ledger.expire_due(limit=10)

    assert list(row.notices.filter(hook=hook).order_by("id").values_list("kind", flat=True)) == kinds


def test_a_hook_that_is_off_hears_nothing(agent: Principal, alice: User) -> None:
    Hook.objects.create(client_id=agent.client_id, url="https://x.example/", secrets="s", is_active=False)

    assert not make_approved(agent, alice).notices.filter(hook__isnull=False).exists()


def test_a_notice_that_is_given_up_stands_in_the_log(agent: Principal) -> None:
    pending = make_pending(agent)
    [notice] = outbox.lease_notices(limit=1, lease=MINUTE, lane=outbox.Lane.MAIL)

    outbox.mark_failed(notice_id=notice.id, retry_in=MINUTE, give_up_after=1)

    assert kinds_of_events(pending) == ["requested", "unsent"]


@proves("redeem:exactly-once")
def test_an_effect_in_the_same_database_is_undone_with_the_yes_or_done_with_it(
    transactional_db: None, agent: Principal, alice: User
) -> None:
    approved = make_approved(agent, alice)

    def fail(_: object) -> str:
        make_user("paid")
        raise RuntimeError("the power went out")

    def act(_: object) -> str:
        return f"Paid as {make_user('paid').username}."

    asked = {
        "confirmation_id": approved.id,
        "requester": agent,
        "action": TRANSFER,
        "redemption_key": "k",
    }
    with pytest.raises(RuntimeError):
        ledger.redeem_with(**asked, effect=fail)
    approved.refresh_from_db()
    assert (approved.status, User.objects.filter(username="paid").exists()) == (Status.APPROVED, False)

    receipt = ledger.redeem_with(**asked, effect=act)
    again = ledger.redeem_with(**asked, effect=fail)

    assert (receipt.result, receipt.detail, receipt.replayed) == (Result.SUCCEEDED, "Paid as paid.", False)
    assert (again.result, again.detail, again.replayed) == (Result.SUCCEEDED, "Paid as paid.", True)
    assert kinds_of_events(approved) == ["requested", "approve", "redeemed", "succeeded"]
    with pytest.raises(errors.AlreadyRedeemed):
        ledger.redeem_with(**asked | {"redemption_key": "other"}, effect=fail)

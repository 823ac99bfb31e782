"""Policies as rows: which one applies, whom it lets decide, and that it stays with what was asked."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError
from django.utils import timezone

from confirmhub.confirmations import errors, ledger, queries
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.policies import matches
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode, Status, Verdict
from tests.confirmations.test_races import at_once
from tests.factories import TRANSFER, decide, kinds_of_events, make_pending, make_user, principal_for, redeem


def make_rule(mode: Mode, **fields: Any) -> Rule:
    defaults = {"name": f"rule {Rule.objects.count()}", "rank": 10}
    return Rule.objects.create(mode=mode, **(defaults | fields))


@pytest.fixture
def payers(db: None) -> Group:
    return Group.objects.create(name="payers")


@pytest.fixture
def make_payer(payers: Group) -> Callable[[str], User]:
    def make(username: str) -> User:
        person = make_user(username)
        person.groups.add(payers)
        return person

    return make


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*", True),
        ("payments.*", True),
        ("*.transfer", True),
        ("p*s.t*r", True),
        ("payments.transfer", True),
        ("payments.transfe", False),
        ("payments.trans?er", False),
        ("payments.[a-z]*", False),
        ("ayments.*", False),
        ("payments.*transfer*", True),
        ("*payments.transfer*payments.transfer*", False),
        ("payments.tr*ransfer", False),
        ("", False),
    ],
)
def test_a_pattern_knows_stars_alone(pattern: str, fits: bool) -> None:  # noqa: FBT001 - a table of cases
    assert matches(pattern=pattern, name="payments.transfer") is fits


def test_the_first_rule_by_rank_that_fits_applies(agent: Principal) -> None:
    make_rule(Mode.DENY, rank=1, name="other-audience", audience="https://other.example")
    make_rule(Mode.DENY, rank=2, name="other-client", client_id="other")
    make_rule(Mode.DENY, rank=3, name="other-action", action_pattern="files.*")
    make_rule(Mode.DENY, rank=9, name="late")
    make_rule(
        Mode.CONFIRM,
        rank=4,
        name="fits",
        audience=TRANSFER.audience,
        client_id=agent.client_id,
        action_pattern="payments.*",
        question="Pay from your account?",
        decide_within=dt.timedelta(hours=1),
    )

    pending = make_pending(agent, question="Do it?")

    assert (pending.policy, pending.question) == ("fits", "Pay from your account?")
    assert pending.decide_by - pending.requested_at == dt.timedelta(hours=1)


def test_what_a_rule_denies_is_refused_and_leaves_no_row(agent: Principal) -> None:
    make_rule(Mode.DENY)

    with pytest.raises(errors.PolicyDenies):
        make_pending(agent)

    assert not Confirmation.objects.exists()


def test_what_a_rule_allows_is_recorded_and_spent_once_without_a_person(agent: Principal) -> None:
    make_rule(Mode.ALLOW, name="harmless")

    allowed = make_pending(agent)
    receipt = redeem(allowed, agent)

    with pytest.raises(errors.AlreadyRedeemed):
        redeem(allowed, agent)
    assert receipt.replayed is False
    assert kinds_of_events(allowed) == ["requested", "allow", "redeemed", "refused"]
    assert not allowed.notices.exists()


def test_what_is_allowed_to_one_client_is_asked_of_a_person_for_another(
    agent: Principal, alice: User
) -> None:
    make_rule(Mode.ALLOW, client_id=agent.client_id)

    assert make_pending(agent).status == Status.APPROVED
    assert make_pending(principal_for(alice, client_id="other")).status == Status.PENDING


def test_an_edited_rule_changes_nothing_that_was_asked_before(
    agent: Principal, alice: User, payers: Group
) -> None:
    pending = make_pending(agent)
    make_rule(Mode.APPROVE, approver_group=payers)

    assert decide(pending, alice).status == Status.APPROVED


def test_a_quorum_of_a_group_approves_and_the_acting_user_does_not(
    agent: Principal, alice: User, bob: User, payers: Group, make_payer: Callable[[str], User]
) -> None:
    make_rule(Mode.APPROVE, approver_group=payers, approvals_needed=2)
    carol, dan = make_payer("carol"), make_payer("dan")
    alice.groups.add(payers)

    pending = make_pending(agent)

    assert set(pending.notices.values_list("kind", "recipient")) == {("asked", carol.pk), ("asked", dan.pk)}
    with pytest.raises(errors.NotApprover):
        decide(pending, alice)
    with pytest.raises(errors.NotFound):
        decide(pending, bob)
    assert decide(pending, carol).status == Status.PENDING
    assert list(queries.list_waiting_for(approver=carol)) == []
    assert list(queries.list_waiting_for(approver=dan)) == [pending]
    assert decide(pending, carol).status == Status.PENDING
    assert decide(pending, dan).status == Status.APPROVED
    assert pending.notices.get(kind="settled").recipient == alice
    assert queries.get_for_approver(confirmation_id=pending.id, approver=alice) == pending


def test_one_denial_of_a_group_settles_it(
    agent: Principal, payers: Group, make_payer: Callable[[str], User]
) -> None:
    make_rule(Mode.APPROVE, approver_group=payers, approvals_needed=2)
    carol, dan = make_payer("carol"), make_payer("dan")
    pending = make_pending(agent)
    decide(pending, carol)

    assert decide(pending, dan, Verdict.DENY, reason="no").status == Status.DENIED


def test_the_acting_user_may_be_one_of_them_where_the_rule_says_so(
    agent: Principal, alice: User, payers: Group
) -> None:
    make_rule(Mode.APPROVE, approver_group=payers, self_approval=True)
    alice.groups.add(payers)

    assert decide(make_pending(agent), alice).status == Status.APPROVED


def test_who_left_the_group_decides_nothing(
    agent: Principal, payers: Group, make_payer: Callable[[str], User]
) -> None:
    make_rule(Mode.APPROVE, approver_group=payers)
    carol = make_payer("carol")
    pending = make_pending(agent)
    carol.groups.clear()

    with pytest.raises(errors.NotFound):
        decide(pending, carol)


def test_a_group_without_people_is_nobody_to_ask(
    agent: Principal, alice: User, bob: User, payers: Group
) -> None:
    make_rule(Mode.APPROVE, approver_group=payers)
    bob.groups.add(payers)
    bob.is_active = False
    bob.save()

    with pytest.raises(errors.PolicyDenies, match="the group that the rule names has no active member"):
        make_pending(agent)

    alice.groups.add(payers)
    alone = "the group that the rule names has nobody but the one it is asked for, who may not approve it"
    with pytest.raises(errors.PolicyDenies, match=alone) as refused:
        make_pending(agent)
    assert "client" not in str(type(refused.value).__doc__)


def test_a_group_too_small_for_the_quorum_is_not_asked(
    agent: Principal, alice: User, payers: Group, make_payer: Callable[[str], User]
) -> None:
    rule = make_rule(Mode.APPROVE, approver_group=payers, approvals_needed=2)
    alice.groups.add(payers)
    make_payer("carol")
    dan = make_payer("dan")
    dan.is_active = False
    dan.save()

    with pytest.raises(errors.PolicyDenies, match="Fewer people could decide"):
        make_pending(agent)

    assert not Confirmation.objects.exists()
    Rule.objects.filter(pk=rule.pk).update(self_approval=True)
    assert make_pending(agent).status == Status.PENDING


@pytest.mark.parametrize(("ago", "fresh"), [(None, False), (11, False), (9, True)])
def test_a_decision_needs_as_fresh_a_sign_in_as_the_rule_says(
    agent: Principal,
    alice: User,
    ago: int | None,
    fresh: bool,  # noqa: FBT001 - a table of cases
) -> None:
    make_rule(Mode.CONFIRM, sign_in_within=dt.timedelta(minutes=10))
    pending = make_pending(agent)
    alice.last_login = None if ago is None else timezone.now() - dt.timedelta(minutes=ago)
    alice.save()

    if fresh:
        assert decide(pending, alice).status == Status.APPROVED
    else:
        with pytest.raises(errors.SignInTooOld):
            decide(pending, alice)
        assert not pending.decisions.exists()


def test_an_approver_for_whom_too_much_waits_is_not_asked_more(
    agent: Principal, alice: User, payers: Group, make_payer: Callable[[str], User]
) -> None:
    make_rule(Mode.CONFIRM, action_pattern="confirmed.*", max_waiting=2)
    make_rule(Mode.APPROVE, action_pattern="approved.*", approver_group=payers, max_waiting=1)
    carol, dan = make_payer("carol"), make_payer("dan")
    other = principal_for(alice, client_id="other")
    make_pending(agent, action=replace(TRANSFER, name="confirmed.a"))
    make_pending(other, action=replace(TRANSFER, name="confirmed.a"))

    with pytest.raises(errors.TooManyOpen) as refusal:
        make_pending(other, action=replace(TRANSFER, name="confirmed.b"))

    assert 0 < refusal.value.retry_after <= 600
    first = make_pending(agent, action=replace(TRANSFER, name="approved.a"))
    assert {notice.recipient for notice in first.notices.all()} == {carol, dan}
    with pytest.raises(errors.TooManyOpen):
        make_pending(agent, action=replace(TRANSFER, name="approved.b"))


@pytest.mark.django_db(transaction=True)
def test_of_two_last_approvals_at_once_both_count_and_one_settles(
    agent: Principal, payers: Group, make_payer: Callable[[str], User]
) -> None:
    make_rule(Mode.APPROVE, approver_group=payers, approvals_needed=3)
    people = [make_payer(f"payer{number}") for number in range(6)]
    pending = make_pending(agent)

    results = at_once(6, lambda number: decide(pending, people[number]))

    pending.refresh_from_db()
    assert pending.status == Status.APPROVED
    assert pending.decisions.count() == 3
    assert sum(isinstance(result, errors.AlreadyDecided) for result in results) == 3


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"mode": "never"}, "rule_mode_known"),
        ({"mode": "approve"}, "rule_approve_names_a_group"),
        ({"mode": "confirm", "approvals_needed": 2}, "rule_one_approval_unless_approve"),
        *(
            ({"mode": "confirm", time: dt.timedelta(seconds=seconds)}, "rule_times_are_positive")
            for time in ("decide_within", "redeem_within")
            for seconds in (0, -1, -300)
        ),
        ({"mode": "confirm", "sign_in_within": dt.timedelta(-1)}, "rule_times_are_positive"),
        ({"mode": "confirm", "max_open": 0}, "rule_limits_are_positive"),
    ],
)
def test_a_rule_that_means_nothing_is_not_kept(db: None, fields: dict[str, Any], constraint: str) -> None:
    with pytest.raises(IntegrityError, match=constraint):
        Rule.objects.create(**({"name": "a", "rank": 1} | fields))


def test_an_operator_revokes_what_a_group_approved(
    agent: Principal, payers: Group, make_payer: Callable[[str], User]
) -> None:
    make_rule(Mode.APPROVE, approver_group=payers)
    carol = make_payer("carol")
    approved = decide(make_pending(agent), carol)

    ledger.revoke(confirmation_id=approved.id, revoker=carol, reason="second thoughts")

    with pytest.raises(errors.Revoked):
        redeem(approved, agent)

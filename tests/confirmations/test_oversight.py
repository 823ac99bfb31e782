"""What operators do: stop and let on, deny, withdraw, and say what came of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import IntegrityError, transaction

from confirmhub.confirmations import audit, errors, evidence, ledger, oversight, queries
from confirmhub.confirmations.dsn import conninfo
from confirmhub.confirmations.models import Confirmation, Halt
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.roles import ADMINISTRATORS, APPROVERS, AUDITORS, OPERATORS
from confirmhub.confirmations.states import Result, Status
from tests.confirmations.test_races import at_once
from tests.factories import (
    TRANSFER,
    kinds_of_events,
    make_approved,
    make_pending,
    make_user,
    principal_for,
    redeem,
)
from tests.invariants import proves


@pytest.fixture
def olga(db: None) -> User:
    """An operator."""
    person = make_user("olga")
    person.groups.add(Group.objects.get(name=OPERATORS))
    return person


def covering(agent: Principal) -> list[dict[str, str]]:
    return [
        {},
        {"client_id": agent.client_id},
        {"subject": agent.subject},
        {"action_pattern": TRANSFER.name},
        {"action_pattern": "pay*.trans*"},
        {"client_id": agent.client_id, "subject": agent.subject, "action_pattern": "*"},
    ]


OTHERS = [
    {"client_id": "https://other.example/client.json"},
    {"subject": "0"},
    {"action_pattern": "payments_transfer"},  # the underscore is no wildcard here
    {"action_pattern": "payments.transfe"},
    {"action_pattern": "pay%"},
    {"action_pattern": "PAYMENTS.*"},
]


@proves("redeem:not-halted")
@pytest.mark.parametrize("which", range(6))
def test_nothing_that_a_stop_covers_is_redeemed_until_it_is_lifted(
    agent: Principal, alice: User, olga: User, which: int
) -> None:
    approved = make_approved(agent, alice)
    stop = ledger.halt(operator=olga, reason="Look into it first", **covering(agent)[which])

    with pytest.raises(errors.Halted) as refusal:
        redeem(approved, agent)
    refused = approved.events.order_by("seq").last()
    assert (refused.kind, refused.detail) == ("refused", '{"code":"halted"}')
    with pytest.raises(errors.Halted):
        ledger.redeem_with(
            confirmation_id=approved.id,
            requester=agent,
            action=TRANSFER,
            redemption_key="k",
            effect=lambda _: pytest.fail("it acted"),
        )
    assert refusal.value.reason == "Look into it first"
    assert queries.list_halts() == [stop]

    ledger.lift(halt_id=stop.pk, operator=olga, reason="It was a drill")
    assert not redeem(approved, agent).replayed
    assert queries.list_halts() == []


@pytest.mark.parametrize("which", range(6))
def test_what_a_stop_does_not_cover_goes_on(agent: Principal, alice: User, olga: User, which: int) -> None:
    approved = make_approved(agent, alice)
    ledger.halt(operator=olga, reason="Others", **OTHERS[which])

    assert not redeem(approved, agent).replayed


def test_what_was_redeemed_before_a_stop_is_answered_again(agent: Principal, alice: User, olga: User) -> None:
    approved = make_approved(agent, alice)
    redeem(approved, agent, key="k")
    ledger.halt(operator=olga, reason="Stop")

    assert redeem(approved, agent, key="k").replayed


def test_a_stop_waits_for_the_redemption_that_began_before_it(
    transactional_db: None, agent: Principal, alice: User, olga: User
) -> None:
    approved = make_approved(agent, alice)
    acting, go_on = threading.Event(), threading.Event()

    def effect(_: object) -> str:
        acting.set()
        assert go_on.wait(20)
        return "Done."

    def spend() -> object:
        ledger.redeem_with(
            confirmation_id=approved.id,
            requester=agent,
            action=TRANSFER,
            redemption_key="k",
            effect=effect,
        )
        return "redeemed"

    def stop() -> object:
        assert acting.wait(20)
        threading.Timer(0.5, go_on.set).start()
        ledger.halt(operator=olga, reason="Stop")
        return Confirmation.objects.get(id=approved.id).status  # as it is when the stop is acknowledged

    assert at_once(2, lambda number: [spend, stop][number]()) == ["redeemed", "redeemed"]


def test_a_stop_that_something_outlasts_is_set_and_says_so(
    transactional_db: None, agent: Principal, alice: User, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oversight, "WAIT", 0.05)
    approved = make_approved(agent, alice)

    with psycopg.connect(conninfo()) as other:
        other.execute("LOCK TABLE confirmations_halt IN ROW SHARE MODE")  # as a redemption under way
        with pytest.raises(errors.Busy, match=r"The stop is set.* did not end in time"):
            ledger.halt(operator=olga, reason="Stop")

    assert [stop.reason for stop in queries.list_halts()] == ["Stop"]
    with pytest.raises(errors.Halted):
        redeem(approved, agent)


def test_a_stop_is_set_once_and_lifted_once_whoever_writes(agent: Principal, olga: User) -> None:
    stop = ledger.halt(operator=olga, reason="Stop")

    for change in ({"reason": "other"}, {"action_like": "x"}, {"client_id": "x"}):
        with pytest.raises(IntegrityError, match="set once"), transaction.atomic():
            Halt.objects.filter(pk=stop.pk).update(**change)
    with pytest.raises(IntegrityError, match="set once"), transaction.atomic():
        Halt.objects.all()._raw_delete("default")
    ledger.lift(halt_id=stop.pk, operator=olga, reason="Over")
    with pytest.raises(errors.AlreadyDecided):
        ledger.lift(halt_id=stop.pk, operator=olga, reason="Over")
    with pytest.raises(errors.NotFound):
        ledger.lift(halt_id=0, operator=olga, reason="Over")
    with pytest.raises(IntegrityError, match="set once"):
        Halt.objects.filter(pk=stop.pk).update(lifted_at=None, lifted_by=None)


@pytest.mark.parametrize(
    "asked",
    [
        {"reason": ""},
        {"reason": " "},
        {"reason": "x" * 281},
        {"reason": "r", "action_pattern": ""},
        {"reason": "r", "action_pattern": "a b"},
        {"reason": "r", "action_pattern": "ä"},
        {"reason": "r", "action_pattern": "x" * 101},
        {"reason": "r", "client_id": "x" * 256},
        {"reason": "r", "subject": "\0"},
    ],
)
def test_a_malformed_stop_is_refused(olga: User, asked: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidAction):
        ledger.halt(operator=olga, **asked)
    assert not Halt.objects.exists()


def moves_of(person: User, pending: Confirmation, redeemed: Confirmation) -> list[Callable[[], object]]:
    return [
        lambda: ledger.halt(operator=person, reason="r"),
        lambda: ledger.lift(halt_id=1, operator=person, reason="r"),
        lambda: ledger.deny(confirmation_id=pending.id, operator=person, reason="r"),
        lambda: ledger.cancel(confirmation_id=pending.id, requester=person, reason="r"),
        lambda: ledger.resolve_outcome(
            confirmation_id=redeemed.id, operator=person, result=Result.FAILED, note="r"
        ),
    ]


@pytest.mark.parametrize("role", [None, APPROVERS, AUDITORS, "deactivated"])
@pytest.mark.parametrize("move", range(5))
def test_who_is_no_operator_does_none_of_it(
    agent: Principal, alice: User, olga: User, role: str | None, move: int
) -> None:
    person = make_user("eve")
    if role == "deactivated":
        person = olga
        User.objects.filter(pk=olga.pk).update(is_active=False)
    elif role:
        person.groups.add(Group.objects.get(name=role))
    redeemed = make_approved(agent, alice)
    redeem(redeemed, agent)

    with pytest.raises(errors.NotPermitted):
        moves_of(person, make_pending(agent), redeemed)[move]()


def test_an_operator_denies_what_waits_and_the_acting_user_hears_of_it(
    agent: Principal, alice: User, olga: User
) -> None:
    pending = make_pending(agent)

    ledger.deny(confirmation_id=pending.id, operator=olga, reason="Not today")

    pending.refresh_from_db()
    assert (pending.status, pending.settled_reason) == (Status.DENIED, "Not today")
    assert kinds_of_events(pending) == ["requested", "denied"]
    assert not pending.decisions.exists()
    assert {(n.kind, n.recipient_id) for n in pending.notices.all()} == {
        ("asked", alice.pk),
        ("settled", alice.pk),
    }
    with pytest.raises(errors.Denied):
        redeem(pending, agent)
    with pytest.raises(errors.Denied):
        ledger.deny(confirmation_id=pending.id, operator=olga, reason="Again")
    audit.seal(limit=10)
    evidence.check(audit._everything())


def test_an_operator_withdraws_what_waits(agent: Principal, olga: User) -> None:
    pending = make_pending(agent)

    ledger.cancel(confirmation_id=pending.id, requester=olga, reason="Asked twice")

    pending.refresh_from_db()
    assert (pending.status, pending.settled_reason) == (Status.CANCELLED, "Asked twice")


def test_an_approved_one_is_revoked_not_denied(agent: Principal, alice: User, olga: User) -> None:
    approved = make_approved(agent, alice)

    with pytest.raises(errors.AlreadyDecided):
        ledger.deny(confirmation_id=approved.id, operator=olga, reason="r")
    ledger.revoke(confirmation_id=approved.id, revoker=olga, reason="r")

    approved.refresh_from_db()
    assert approved.status == Status.REVOKED


def test_an_operator_says_what_came_of_a_redemption_that_nobody_reported(
    agent: Principal, alice: User, olga: User
) -> None:
    approved = make_approved(agent, alice)
    receipt = redeem(approved, agent, key="k")

    ledger.resolve_outcome(
        confirmation_id=approved.id, operator=olga, result=Result.FAILED, note="The bank says no"
    )

    assert redeem(approved, agent, key="k").detail == "The bank says no"
    assert approved.events.order_by("seq").last().actor == f"user {olga.pk}"
    with pytest.raises(errors.AlreadyReported):
        ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED)
    with pytest.raises(errors.AlreadyReported):
        ledger.resolve_outcome(confirmation_id=approved.id, operator=olga, result=Result.SUCCEEDED, note="r")


@pytest.mark.parametrize("how", ["reported", "resolved", "in one transaction"])
def test_a_row_says_itself_whether_it_has_an_outcome(
    transactional_db: None, agent: Principal, alice: User, olga: User, how: str
) -> None:
    approved = make_approved(agent, alice)
    if how == "in one transaction":
        ledger.redeem_with(
            confirmation_id=approved.id,
            requester=agent,
            action=TRANSFER,
            redemption_key="k",
            effect=lambda _: "Done.",
        )
    else:
        receipt = redeem(approved, agent)
        approved.refresh_from_db()
        assert not approved.has_outcome
        if how == "reported":
            ledger.report_outcome(receipt=receipt, result=Result.FAILED)
        else:
            ledger.resolve_outcome(confirmation_id=approved.id, operator=olga, result=Result.FAILED, note="r")

    approved.refresh_from_db()
    assert approved.has_outcome


def test_only_what_was_redeemed_has_an_outcome(agent: Principal, olga: User) -> None:
    with pytest.raises(errors.NotFound):
        ledger.resolve_outcome(
            confirmation_id=make_pending(agent).id, operator=olga, result=Result.FAILED, note="r"
        )


def test_refused_redemptions_are_on_the_record_up_to_a_bound(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    redeem(approved, agent)

    for _ in range(12):
        with pytest.raises(errors.AlreadyRedeemed):
            redeem(approved, agent)
    with pytest.raises(errors.NotFound):
        redeem(approved, principal_for(make_user("eve")))

    approved.refresh_from_db()
    assert approved.refusals == 10
    assert kinds_of_events(approved)[3:] == ["refused"] * 10
    assert approved.events.order_by("seq").last().detail == '{"code":"already_redeemed"}'
    audit.seal(limit=10)
    evidence.check(audit._everything())


def test_the_roles_have_the_rights_that_their_names_say(db: None) -> None:
    def held(name: str) -> set[str]:
        return set(Permission.objects.filter(group__name=name).values_list("codename", flat=True))

    assert held(APPROVERS) == set()
    assert {code.split("_")[0] for code in held(AUDITORS)} == {"view"}
    assert held(OPERATORS) - held(AUDITORS) == {"change_confirmation", "add_halt"}
    assert {"change_rule", "add_user", "change_client"} <= held(ADMINISTRATORS)


def test_a_role_that_was_changed_stays_as_it_is(transactional_db: None) -> None:
    from django.core.management import call_command

    Group.objects.get(name=AUDITORS).permissions.clear()
    Group.objects.get(name=OPERATORS).delete()
    call_command("migrate", verbosity=0)

    assert not Group.objects.get(name=AUDITORS).permissions.exists()
    assert Group.objects.get(name=OPERATORS).permissions.exists()

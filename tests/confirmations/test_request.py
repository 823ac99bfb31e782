"""Asking: what is accepted, what one gets back, and what is refused with nothing half done."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now

from confirmhub.confirmations import errors, ledger, policies
from confirmhub.confirmations.actions import Action, Json, Observation
from confirmhub.confirmations.ids import new_id
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status
from tests.confirmations.clock import make_overdue
from tests.factories import (
    AUDIENCE,
    TRANSFER,
    kinds_of_events,
    make_approved,
    make_pending,
    principal_for,
    redeem,
)


def numbered(number: int) -> Action:
    return Action(audience=AUDIENCE, name="payments.transfer", arguments={"number": number})


def test_a_request_is_pending_and_tells_the_acting_user(agent: Principal, alice: User) -> None:
    pending = make_pending(agent, summary="Rent")

    assert pending.status == Status.PENDING
    assert pending.decide_by - pending.requested_at == dt.timedelta(minutes=10)
    assert [(notice.kind, notice.recipient) for notice in pending.notices.all()] == [("asked", alice)]
    assert kinds_of_events(pending) == ["requested"]


def test_a_requester_may_shorten_the_time_to_decide_and_not_lengthen_it(agent: Principal) -> None:
    given = [
        make_pending(agent, action=numbered(number), decide_within=dt.timedelta(minutes=minutes))
        for number, minutes in enumerate((1, 10, 600))
    ]

    assert [one.decide_by - one.requested_at for one in given] == [
        dt.timedelta(minutes=minutes) for minutes in (1, 10, 10)
    ]


def test_strings_from_outside_are_kept_exactly(agent: Principal) -> None:
    hostile = "a\x00b\ud800c\U0001f600"
    seen = Observation(facts=(("Path", hostile),), fingerprint="f1")

    pending = make_pending(agent, summary=hostile, observation=seen)

    assert pending.summary == hostile
    assert pending.fact_items == [("Path", hostile)]


def test_the_same_open_action_gets_the_same_confirmation(agent: Principal, alice: User) -> None:
    first = make_pending(agent)

    assert make_pending(agent) == first
    assert make_approved(agent, alice) == first
    assert make_pending(agent) == first


def test_a_settled_action_can_be_asked_for_again(agent: Principal, alice: User) -> None:
    spent = make_approved(agent, alice)
    redeem(spent, agent)

    assert make_pending(agent) != spent


def test_an_overdue_question_is_settled_and_asked_anew(agent: Principal) -> None:
    pending = make_pending(agent)
    make_overdue(pending, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

    again = make_pending(agent)

    pending.refresh_from_db()
    assert again != pending
    assert pending.status == Status.EXPIRED
    assert kinds_of_events(pending) == ["requested", "expired"]


def test_an_idempotency_key_gets_its_confirmation_even_when_settled(agent: Principal, alice: User) -> None:
    first = make_pending(agent, idempotency_key="k1")
    ledger.cancel(confirmation_id=first.id, requester=agent)

    assert make_pending(agent, idempotency_key="k1") == first


def test_an_idempotency_key_of_another_action_is_refused(agent: Principal) -> None:
    make_pending(agent, idempotency_key="k1")

    with pytest.raises(errors.ActionDiffers):
        make_pending(agent, action=numbered(1), idempotency_key="k1")

    assert Confirmation.objects.count() == 1


def test_two_requesters_do_not_share_a_confirmation(agent: Principal, alice: User, bob: User) -> None:
    mine = make_pending(agent)

    assert make_pending(principal_for(bob)) != mine
    assert make_pending(principal_for(alice, client_id="other")) != mine


@pytest.mark.parametrize("key", ["", "two words", "ä", "x" * 201])
def test_a_malformed_idempotency_key_is_refused(agent: Principal, key: str) -> None:
    with pytest.raises(errors.InvalidAction, match="idempotency key"):
        make_pending(agent, idempotency_key=key)


def test_what_cannot_be_shown_whole_is_refused(agent: Principal) -> None:
    long = "ab" * 2_001

    with pytest.raises(errors.InvalidAction, match="could not be shown"):
        make_pending(agent, action=Action(audience=AUDIENCE, name="run", arguments={"list": [{"key": long}]}))
    with pytest.raises(errors.InvalidAction, match="could not be shown"):
        make_pending(agent, observation=Observation(facts=(("Path", long),), fingerprint=""))
    with pytest.raises(errors.InvalidAction, match="summary"):
        make_pending(agent, summary="a" * 1_001)

    assert not Confirmation.objects.exists()


def test_more_rows_than_anybody_reads_are_refused(agent: Principal) -> None:
    """A row is a value at any depth, a fact, or a further line of a text."""

    def ask(
        arguments: dict[str, Json], *, summary: str = "", facts: tuple[tuple[str, str], ...] = ()
    ) -> None:
        action = Action(audience=AUDIENCE, name="run", arguments=arguments)
        make_pending(agent, action=action, summary=summary, observation=Observation(facts, ""))

    one_too_many: list[dict[str, Json]] = [
        {str(number): 0 for number in range(1_001)},
        {"a": [0] * 1_000},
        {"a": [{"b": [[]] * 332}, [{}] * 333, [0] * 331]},
        {"a": "\n" * 250, "b": ["x\n" * 250] * 2, "c\n": ["\n" * 244]},
    ]
    for arguments in one_too_many:
        with pytest.raises(errors.InvalidAction, match=r"takes 1001 rows on the page, .*at most 1000 can be"):
            ask(arguments)
    with pytest.raises(errors.InvalidAction, match="takes 1001 rows"):
        ask({"a": [0] * 990}, summary="\n" * 4, facts=(("a", "b\nc\n"), ("d", "\n\n")))
    assert not Confirmation.objects.exists()

    ask({"a": [0] * 999})
    ask({"a": [0] * 990}, summary="\n" * 4, facts=(("a", "b\nc"), ("d", "\n\n")))


def test_more_seen_than_anybody_reads_is_refused(agent: Principal) -> None:
    facts = tuple((f"Fact {number}", "\u202e" + "x" * 3_980) for number in range(9))

    with pytest.raises(errors.InvalidAction, match="facts take more than 32000 characters"):
        make_pending(agent, observation=Observation(facts, ""))
    make_pending(agent, observation=Observation(facts[:8], ""))


@pytest.mark.parametrize("subject", ["4711", "nobody", "1" * 40, "-1", "²"])
def test_a_request_for_a_subject_that_nobody_is_is_refused(db: None, subject: str) -> None:
    if not subject.isascii():
        with pytest.raises(ValueError, match="ASCII"):
            Principal(client_id="c", subject=subject)
        return

    with pytest.raises(errors.PolicyDenies):
        make_pending(Principal(client_id="c", subject=subject))


def test_a_deactivated_user_is_not_asked(agent: Principal, alice: User) -> None:
    alice.is_active = False
    alice.save()

    with pytest.raises(errors.PolicyDenies):
        make_pending(agent)


def test_too_many_open_requests_are_refused_with_when_to_come_back(agent: Principal) -> None:
    most = policies.BUILT_IN.max_open
    for number in range(most):
        make_pending(agent, action=numbered(number))

    with pytest.raises(errors.TooManyOpen) as refusal:
        make_pending(agent)

    assert 0 < refusal.value.retry_after <= 600
    assert Confirmation.objects.count() == most


def test_what_is_overdue_takes_no_place_among_the_open(agent: Principal) -> None:
    for number in range(policies.BUILT_IN.max_open):
        overdue = make_pending(agent, action=numbered(number))
    make_overdue(overdue, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

    assert make_pending(agent).status == Status.PENDING


def test_two_hundred_confirmations_have_two_hundred_ids(alice: User) -> None:
    requesters = [principal_for(alice, client_id=f"agent-{number}") for number in range(4)]

    ids = {make_pending(who, action=numbered(number)).id for who in requesters for number in range(50)}

    assert len(ids) == 200


@pytest.mark.parametrize("part", ["", "ä", "a\n", "x" * 256])
def test_a_principal_without_a_name_or_with_a_false_one_is_refused(part: str) -> None:
    for parts in ((part, "1"), ("agent", part)):
        with pytest.raises(ValueError, match="printable ASCII"):
            Principal(*parts)


@pytest.mark.django_db(transaction=True)
def test_of_simultaneous_requests_for_one_action_one_row_comes(agent: Principal) -> None:
    racers = 8
    start = threading.Barrier(racers, timeout=10)
    found: list[Confirmation] = []

    def race() -> None:
        connection.ensure_connection()
        start.wait()
        try:
            found.append(ledger.request(requester=agent, action=TRANSFER))
        finally:
            connection.close()

    threads = [threading.Thread(target=race) for _ in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)

    assert len(found) == racers
    assert len({row.id for row in found}) == 1
    assert Confirmation.objects.count() == 1


def test_ids_grow_with_time_and_are_of_version_7() -> None:
    ids = [new_id() for _ in range(1_000)]

    assert len(set(ids)) == 1_000
    assert {(id_.version, id_.variant) for id_ in ids} == {(7, uuid.RFC_4122)}
    assert [id_.int >> 80 for id_ in ids] == sorted(id_.int >> 80 for id_ in ids)
    assert abs((ids[0].int >> 80) - time.time() * 1_000) < 60_000

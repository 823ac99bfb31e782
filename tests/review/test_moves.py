"""What an operator does to a confirmation: as permitted, with a reason, by the ledger, and no approving."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from confirmhub.confirmations import ledger, queries
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status
from tests.factories import AUDIENCE, kinds_of_events, make_approved, make_pending, redeem

QUEUE = "/admin/confirmations/confirmation/"
WHY = "It was asked by mistake."


@pytest.fixture
def redeemed(agent: Principal, alice: User) -> Confirmation:
    approved = make_approved(agent, alice)
    redeem(approved, agent)
    return approved


def move(confirmation: Confirmation, name: str) -> str:
    return f"{QUEUE}{confirmation.id}/{name}/"


def fresh(confirmation: Confirmation) -> Confirmation:
    return queries.list_for_operator().get(id=confirmation.id)


def several(agent: Principal, number: int) -> list[Confirmation]:
    return [make_pending(agent, action=Action(AUDIENCE, "run", {"number": each})) for each in range(number)]


@pytest.mark.parametrize(("name", "becomes"), [("deny", Status.DENIED), ("cancel", Status.CANCELLED)])
def test_a_question_is_denied_or_cancelled_with_a_reason(
    operator: Client, otto: User, agent: Principal, name: str, becomes: Status
) -> None:
    asked = make_pending(agent)

    form = operator.get(move(asked, name))
    assert form.status_code == 200
    assert "DE89370400440532013000" in form.content.decode()
    assert operator.post(move(asked, name), {"reason": WHY}, follow=True).status_code == 200

    now = fresh(asked)
    assert (now.status, now.settled_reason) == (becomes, WHY)
    event = now.events.get(kind=str(becomes))
    assert event.actor == f"user {otto.pk}"
    assert WHY in event.detail
    assert not now.decisions.exists()


def test_an_approval_is_revoked_with_a_reason(operator: Client, agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    operator.post(move(approved, "revoke"), {"reason": WHY})

    assert (fresh(approved).status, fresh(approved).settled_reason) == (Status.REVOKED, WHY)


def test_an_unknown_outcome_is_resolved_with_a_note(operator: Client, redeemed: Confirmation) -> None:
    operator.post(move(redeemed, "resolve"), {"result": "failed", "reason": "The bank says no."})

    assert (fresh(redeemed).outcome.result, fresh(redeemed).outcome.detail) == ("failed", "The bank says no.")
    again = operator.get(move(redeemed, "resolve"), follow=True)
    assert "Nothing to do" in again.content.decode()


@pytest.mark.parametrize("name", ["deny", "cancel"])
@pytest.mark.parametrize("reason", ["", "   ", "x" * 281])
def test_without_a_reason_nothing_happens(operator: Client, agent: Principal, name: str, reason: str) -> None:
    asked = make_pending(agent)

    answer = operator.post(move(asked, name), {"reason": reason})

    assert answer.status_code == 200
    assert answer.context["form"].errors["reason"]
    assert fresh(asked).status == Status.PENDING


def test_an_outcome_is_not_recorded_without_saying_which(operator: Client, redeemed: Confirmation) -> None:
    for said in ({"reason": WHY}, {"reason": WHY, "result": "maybe"}, {"result": "failed"}):
        assert operator.post(move(redeemed, "resolve"), said).context["form"].errors
    assert not fresh(redeemed).has_outcome


@pytest.mark.parametrize("who", ["onlooker", "auditor"])
@pytest.mark.parametrize("name", ["deny", "cancel", "revoke", "resolve"])
def test_who_may_only_look_is_offered_no_move_and_makes_none(
    request: pytest.FixtureRequest, agent: Principal, who: str, name: str
) -> None:
    client: Client = request.getfixturevalue(who)
    asked = make_pending(agent)

    assert client.get(move(asked, name)).status_code == 403
    assert client.post(move(asked, name), {"reason": WHY, "result": "failed"}).status_code == 403
    page = client.get(f"{QUEUE}{asked.id}/change/").content.decode()
    assert move(asked, name) not in page
    assert "deny_marked" not in client.get(QUEUE).content.decode()
    client.post(QUEUE, {"action": "deny_marked", "_selected_action": [str(asked.id)], "reason": WHY})
    assert fresh(asked).status == Status.PENDING


@pytest.mark.parametrize("name", ["approve", "redeem", "decide"])
def test_there_is_no_way_to_approve(operator: Client, agent: Principal, name: str) -> None:
    asked = make_pending(agent)

    assert operator.post(move(asked, name), {"reason": WHY}).status_code in (302, 404)
    for page in (QUEUE, f"{QUEUE}{asked.id}/change/"):
        html = operator.get(page).content.decode()
        assert (
            re.findall(r"(?i)<(?:button|a|input|option)[^>]*(?:value=\"approve|>\s*approve\b(?!d))", html)
            == []
        )
    assert "Nobody approves here" in html
    assert fresh(asked).status == Status.PENDING


def test_what_was_settled_meanwhile_stays_as_it_is(operator: Client, agent: Principal) -> None:
    asked = make_pending(agent)
    ledger.cancel(confirmation_id=asked.id, requester=agent)

    answer = operator.post(move(asked, "deny"), {"reason": WHY}, follow=True)

    assert "Nothing was changed" in answer.content.decode()
    assert fresh(asked).status == Status.CANCELLED


def test_no_such_confirmation_has_no_move(operator: Client) -> None:
    unknown = f"{QUEUE}01a22d4a-b264-74f1-8e12-376bebb66e35/deny/"

    assert operator.get(unknown).status_code == 404
    assert operator.post(unknown, {"reason": WHY}).status_code == 404


def test_several_are_denied_together_with_one_reason(operator: Client, agent: Principal) -> None:
    first, second, third = several(agent, 3)
    marked = {"action": "deny_marked", "_selected_action": [str(first.id), str(second.id)]}

    form = operator.post(QUEUE, marked)
    assert "Deny 2 questions" in form.content.decode()
    assert fresh(first).status == Status.PENDING
    ledger.cancel(confirmation_id=second.id, requester=agent)
    told = operator.post(QUEUE, marked | {"reason": WHY}, follow=True)

    assert "Denied: 1. No longer waiting, and left as they were: 1." in told.content.decode()
    assert [fresh(each).status for each in (first, second, third)] == ["denied", "cancelled", "pending"]
    assert kinds_of_events(first)[-1] == "denied"


def test_one_is_not_called_all(operator: Client, agent: Principal) -> None:
    (asked,) = several(agent, 1)

    html = operator.post(
        QUEUE, {"action": "deny_marked", "_selected_action": [str(asked.id)]}
    ).content.decode()

    assert "Deny 1 question" in html
    assert 'value="Deny it"' in html


def test_all_is_never_what_is_denied(operator: Client, agent: Principal) -> None:
    first, second = several(agent, 2)

    operator.post(
        QUEUE,
        {
            "action": "deny_marked",
            "_selected_action": [str(first.id), "no id", "0"],
            "select_across": "1",
            "reason": WHY,
        },
    )

    assert fresh(first).status in (Status.DENIED, Status.PENDING)
    assert fresh(second).status == Status.PENDING


def test_several_are_not_denied_without_a_reason(operator: Client, agent: Principal) -> None:
    [asked] = several(agent, 1)
    marked = {"action": "deny_marked", "_selected_action": [str(asked.id)], "reason": " "}

    assert operator.post(QUEUE, marked).context["form"].errors
    assert fresh(asked).status == Status.PENDING


def test_the_page_says_whether_the_record_is_whole(operator: Client, redeemed: Confirmation) -> None:
    html = operator.get(f"{QUEUE}{redeemed.id}/change/").content.decode()

    assert "each sealed with the one before it" in html
    assert "(alice)" in html

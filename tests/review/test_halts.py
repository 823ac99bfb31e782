"""The stop, as operators set and lift it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from confirmhub.confirmations import errors, ledger, queries
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Halt
from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import services
from tests.factories import AUDIENCE, make_approved, make_pending, redeem

# A stop waits for what is being redeemed, which takes a commit.
pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/confirmations/halt/"
ADD = f"{LIST}add/"
WHY = "Something is wrong with the ba\u202enk."


def stop(client: Client, **said: str) -> Halt:
    answer = client.post(ADD, {"action_pattern": "*", "reason": WHY} | said, follow=True)
    assert "Stopped." in answer.content.decode()
    return Halt.objects.latest("id")


def test_all_is_stopped_and_let_on_again(operator: Client, otto: User, agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    halt = stop(operator)
    with pytest.raises(errors.Halted):
        redeem(approved, agent)
    html = operator.get(LIST).content.decode()
    for said in ("everything", "in force", "otto", "Something is wrong with the ba⟨U+202E⟩nk.", "Lift it"):
        assert said in html
    assert "\u202e" not in html

    assert operator.post(f"{LIST}{halt.pk}/lift/", {"reason": ""}).context["form"].errors
    operator.post(f"{LIST}{halt.pk}/lift/", {"reason": "The bank is well again."})

    redeem(approved, agent)
    halt.refresh_from_db()
    assert (halt.lifted_by, halt.lift_reason) == (otto, "The bank is well again.")
    assert "It was lifted before" in operator.get(f"{LIST}{halt.pk}/lift/", follow=True).content.decode()


def test_the_page_of_a_stop_leads_to_its_lift_for_who_may_and_as_long_as_it_holds(
    operator: Client, auditor: Client
) -> None:
    halt = stop(operator)
    page, lift = f"{LIST}{halt.pk}/change/", f"{LIST}{halt.pk}/lift/"

    assert f'href="{lift}"' in operator.get(page).content.decode()
    assert f"<h1>Stop {halt.pk}</h1>" in operator.get(page).content.decode()
    assert lift not in auditor.get(page).content.decode()

    operator.post(lift, {"reason": "It was a drill."})
    assert f'href="{lift}"' not in operator.get(page).content.decode()


def test_a_stop_covers_no_more_than_it_says(
    operator: Client, agent: Principal, alice: User, bob: User
) -> None:
    approved = make_approved(agent, alice)

    for narrow in (
        {"client_id": "https://other.example/client.json"},
        {"account": "bob"},
        {"action_pattern": "files.*"},
    ):
        stop(operator, **narrow)
    assert len(queries.list_halts()) == 3
    redeem(approved, agent)

    other = make_approved(agent, alice)
    stop(operator, client_id=agent.client_id, account="alice", action_pattern="payments.*")
    with pytest.raises(errors.Halted):
        redeem(other, agent)


def test_a_stop_names_a_service_as_its_operators_do(operator: Client) -> None:
    service, _ = services.create(name="Payroll", audience="https://pay.example/mcp")
    named = "Payroll (pay.example)"

    halt = stop(operator, client_id=service.client_id)

    for path in (LIST, f"{LIST}{halt.pk}/lift/"):
        assert f"every action of {named}" in operator.get(path).content.decode()
    page = operator.get(f"{LIST}{halt.pk}/change/").content.decode()
    assert f"{named}, client id {service.client_id}" in page


def test_a_stop_names_a_program_that_nobody_knows_by_its_id(operator: Client) -> None:
    halt = stop(operator, client_id="https://soon.example/client.json")

    for path in (LIST, f"{LIST}{halt.pk}/change/"):
        assert "https://soon.example/client.json" in operator.get(path).content.decode()
    assert "client id https" not in operator.get(f"{LIST}{halt.pk}/change/").content.decode()


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"reason": ""}, "reason"),
        ({"account": "nobody"}, "account"),
        ({"action_pattern": ""}, "action_pattern"),
        ({"action_pattern": "two words"}, "__all__"),
    ],
)
def test_what_is_wrong_with_a_stop_is_said(operator: Client, said: dict[str, str], field: str) -> None:
    answer = operator.post(ADD, {"action_pattern": "*", "reason": WHY} | said)

    assert list(answer.context["form"].errors) == [field]
    assert not Halt.objects.exists()


NEVER = "Nothing that it covers was ever asked for."
NOBODY = "No program with the id https://agnet⟨U+202E⟩.example is known here."


@pytest.mark.parametrize(
    ("narrow", "covers", "warned"),
    [
        ({}, "2 open confirmations", ""),
        ({"client_id": "https://agent.example/client.json"}, "2 open confirmations", ""),
        ({"action_pattern": "payments.*"}, "1 open confirmation", ""),
        ({"account": "otto"}, "0 open confirmations", NEVER),
        ({"action_pattern": "payment.*"}, "0 open confirmations", NEVER),
        ({"client_id": "https://agnet\u202e.example"}, "0 open confirmations", NOBODY),
    ],
    ids=str,
)
def test_who_stops_is_told_what_that_covers_and_of_a_slip_of_the_pen(
    operator: Client, asked: None, narrow: dict[str, str], covers: str, warned: str
) -> None:
    answer = operator.post(ADD, {"action_pattern": "*", "reason": WHY} | narrow, follow=True)

    html = answer.content.decode()
    assert f"It covers {covers}, and all that are asked for" in html
    assert ("If it is misspelt, what you meant is not stopped." in html) == bool(warned)
    assert warned in html
    assert "\u202e" not in html


def test_a_stop_of_which_nobody_can_count_in_time_is_in_force(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_slow(**_: object) -> None:
        raise OperationalError

    monkeypatch.setattr(queries, "covered_by", too_slow)

    html = operator.post(ADD, {"action_pattern": "*", "reason": WHY}, follow=True).content.decode()

    assert "Stopped. How much it covers could not be counted in time." in html
    assert len(queries.list_halts()) == 1


def test_a_stop_that_is_set_although_something_did_not_end_is_no_refusal(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_and_not_waited_for(**_: object) -> None:
        raise errors.Busy("The stop is set. But what began before did not end in time.")

    monkeypatch.setattr(ledger, "halt", set_and_not_waited_for)

    answer = operator.post(ADD, {"action_pattern": "*", "reason": WHY}, follow=True)

    assert answer.redirect_chain == [(LIST, 302)]  # not the form again, which would set a second one
    assert "The stop is set. But what began before did not end" in answer.content.decode()


@pytest.fixture
def asked(agent: Principal, alice: User) -> None:
    """One that waits, one that may be redeemed, and one that was."""
    make_pending(agent)
    run, again = Action(AUDIENCE, "run", {}), Action(AUDIENCE, "run", {"again": True})
    make_approved(agent, alice, action=run)
    redeem(make_approved(agent, alice, action=again), agent, action=again)


@pytest.mark.parametrize("who", ["onlooker", "auditor"])
def test_who_may_only_look_neither_stops_nor_lifts(
    request: pytest.FixtureRequest, operator: Client, who: str
) -> None:
    client: Client = request.getfixturevalue(who)
    halt = stop(operator)

    assert client.get(ADD).status_code == 403
    assert client.post(ADD, {"action_pattern": "*", "reason": WHY}).status_code == 403
    assert client.post(f"{LIST}{halt.pk}/lift/", {"reason": WHY}).status_code == 403
    html = client.get(LIST).content.decode()
    assert "in force" in html
    assert "Lift it" not in html
    assert Halt.objects.filter(lifted_at=None).count() == 1


def test_the_way_from_a_confirmation_fills_in_what_to_stop(operator: Client, agent: Principal) -> None:
    asked = make_pending(agent)
    page = operator.get(f"/admin/confirmations/confirmation/{asked.id}/change/").content.decode()
    link = f"{ADD}?client_id=https%3A%2F%2Fagent.example%2Fclient.json&amp;action_pattern=payments.transfer"
    assert link in page

    html = operator.get(link.replace("&amp;", "&")).content.decode()
    assert 'value="https://agent.example/client.json"' in html
    assert 'value="payments.transfer"' in html
    assert "\u202e" not in operator.get(f"{ADD}?client_id=a%E2%80%AEb").content.decode()


def test_a_stop_is_neither_edited_nor_deleted(operator: Client, root: Client) -> None:
    halt = stop(operator)

    for client in (operator, root):
        assert client.post(f"{LIST}{halt.pk}/change/", {"reason": "x"}).status_code == 403
        assert client.post(f"{LIST}{halt.pk}/delete/", {"post": "yes"}).status_code == 403

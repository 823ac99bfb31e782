"""While an operator has stopped redemptions, every page says so, and what that means for a yes."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from confirmhub.confirmations import ledger
from confirmhub.confirmations.models import Confirmation, Halt
from confirmhub.confirmations.principals import Principal
from tests.factories import decide, make_user
from tests.oauth.conftest import Host
from tests.pages.conftest import DELETE

pytestmark = pytest.mark.django_db(transaction=True)

STOPPED = "Redemptions are stopped"
UNUSABLE = "A yes cannot be used at present."


@pytest.fixture
def operator(transactional_db: None) -> User:
    return make_user("operator\u202e", is_superuser=True)


def halt(operator: User, reason: str = "Incident\u200b 7", **fields: str) -> Halt:
    return ledger.halt(operator=operator, reason=reason, **fields)


def words(browser: Client, path: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", browser.get(path).content.decode()).split())


@pytest.mark.parametrize("path", ["/", "/history", "/password", "/account/hosts", "/nowhere", "/try"])
def test_every_page_says_that_redemptions_are_stopped_for_what_since_when_by_whom_and_why(
    browser: Client, operator: User, path: str
) -> None:
    made = halt(operator, action_pattern="delete_*")

    told = words(browser, path)

    assert f"{STOPPED} for the action delete_* since {made.set_at:%Y-%m-%d %H:%M:%S} UTC" in told
    assert "by operator \u27e8U+202E\u27e9 : no yes to that is carried out, and all else goes on." in told
    assert "Incident \u27e8U+200B\u27e9 7" in told


def test_a_stop_of_everything_leaves_nothing_to_go_on(browser: Client, operator: User) -> None:
    halt(operator)

    told = words(browser, "/")

    assert f"{STOPPED} for every action since" in told
    assert ": no yes is carried out. “" in told


@pytest.mark.parametrize("path", ["/sign-in", "/nowhere"])
def test_who_is_not_signed_in_is_told_that_there_is_a_stop_and_nothing_of_it(
    operator: User, path: str
) -> None:
    nobody = Client(headers={"host": "localhost"})
    assert STOPPED not in words(nobody, path)
    halt(operator, action_pattern="delete_*")

    told = words(nobody, path)

    assert f"{STOPPED} , all or some of them. Sign in to see which, and why." in told
    assert not any(hidden in told for hidden in ("Incident", "delete_", "operator"))


@pytest.mark.parametrize(
    "fields", [{"subject": "1"}, {"client_id": "https://agent.example/client.json"}], ids=str
)
def test_who_is_not_signed_in_is_not_told_of_a_stop_of_somebody(
    operator: User, fields: dict[str, str]
) -> None:
    halt(operator, **fields)

    assert STOPPED not in words(Client(headers={"host": "localhost"}), "/sign-in")


def test_a_lifted_stop_is_not_told_of(browser: Client, operator: User) -> None:
    ledger.lift(halt_id=halt(operator).pk, operator=operator, reason="over")

    assert STOPPED not in words(browser, "/")


def test_a_stop_of_one_person_is_told_to_them_and_to_operators(
    browser: Client, stranger: Client, alice: User, bob: User, operator: User
) -> None:
    halt(operator, subject=str(alice.pk))

    assert f"{STOPPED} for every action for alice" in words(browser, "/")
    assert STOPPED not in words(stranger, "/")
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    assert STOPPED in words(stranger, "/")


def test_a_stop_of_a_program_is_told_to_those_whom_it_asks_and_to_operators(
    browser: Client, stranger: Client, bob: User, operator: User, pending: Confirmation
) -> None:
    halt(operator, client_id=pending.requester_client_id)

    assert f"{STOPPED} for every action of {pending.requester_client_id}" in words(browser, "/")
    assert STOPPED not in words(stranger, "/")
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    assert STOPPED in words(stranger, "/")


def test_a_stop_of_a_program_is_told_to_those_who_are_connected_with_it(
    stranger: Client, bob: User, operator: User, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]  # the host asks without a server
    host = Host(user=bob, resource=settings.MCP_RESOURCE)
    host.browser.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    assert host.register(client_name="Claude").status_code == 201
    halt(operator, client_id=host.client_id)
    assert STOPPED not in words(stranger, "/")

    host.sign_in()

    assert STOPPED in words(stranger, "/")


@pytest.mark.parametrize(
    "fields",
    [{}, {"action_pattern": "delete_*"}, {"client_id": "https://agent.example/client.json"}],
    ids=["all", "action", "client"],
)
def test_the_question_says_that_a_yes_would_not_be_carried_out(
    browser: Client, operator: User, pending: Confirmation, fields: dict[str, str]
) -> None:
    halt(operator, **fields)

    told = words(browser, f"/confirm/{pending.id}")

    assert UNUSABLE in told
    assert "Approve once" in told


@pytest.mark.parametrize(
    "fields", [{"action_pattern": "move_*"}, {"client_id": "another"}, {"subject": "0"}], ids=str
)
def test_the_question_does_not_speak_of_a_stop_of_something_else(
    browser: Client, operator: User, pending: Confirmation, fields: dict[str, str]
) -> None:
    halt(operator, **fields)

    assert UNUSABLE not in words(browser, f"/confirm/{pending.id}")


def test_spending_a_stopped_yes_is_refused_with_the_reason(
    browser: Client, operator: User, alice: User
) -> None:
    browser.post("/try")
    rehearsal = Confirmation.objects.get()
    decide(rehearsal, alice)
    halt(operator)

    response = browser.post(f"/try/{rehearsal.id}/spend")

    html = response.content.decode()
    assert response.status_code == 409
    assert "The yes was not spent." in html
    assert "Incident" in html
    assert "\u200b" not in html


def test_a_receipt_of_a_spent_yes_has_nothing_to_warn_of(
    browser: Client, operator: User, alice: User, agent: Principal, pending: Confirmation
) -> None:
    decide(pending, alice)
    ledger.redeem(confirmation_id=pending.id, requester=agent, action=DELETE, redemption_key="k")
    halt(operator)

    told = words(browser, f"/confirm/{pending.id}")

    assert STOPPED in told
    assert UNUSABLE not in told

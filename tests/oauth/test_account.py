"""Connected programs: listed for whom they act for, and gone at once when disconnected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from confirmhub.confirmations import ledger
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import bearer, connections
from confirmhub.oauth.models import AccessToken, Client, Code, RefreshToken
from confirmhub.oauth.tokens import digest
from tests.factories import TRANSFER, decide, make_pending

PAGE = "/account/hosts"


def test_the_page_lists_what_is_connected_and_what_it_may_do(host: Any) -> None:
    assert "No program is connected" in host.browser.get(PAGE).content.decode()
    host.sign_in(scope="confirm:read")
    host.sign_in(scope="confirm:request")

    page = host.browser.get(PAGE).content.decode()

    assert "127.0.0.1:33418" in page
    assert "Test host" in page
    assert "Ask you to confirm an action" in page
    assert page.count("Disconnect</button>") == 1


def test_a_disconnected_program_is_out_at_once_and_others_stay(new_host: Any) -> None:
    gone, kept = new_host(), new_host()
    lost = [gone.sign_in(), gone.sign_in()]
    code = gone.code()
    tokens = kept.sign_in()
    key = Client.objects.get(client_id=gone.client_id).pk

    answer = gone.browser.post(PAGE, {"key": key})

    assert answer.status_code == 302
    for old in lost:
        assert bearer.find(token=old["access_token"]) is None
        assert gone.refresh(old["refresh_token"]).json()["error"] == "invalid_grant"
    assert gone.redeem(code).json()["error"] == "invalid_grant"
    assert bearer.find(token=tokens["access_token"]) is not None
    assert [line.key for line in connections.list_connections(user=kept.user)] != [key]


def test_nobody_disconnects_or_sees_what_is_another_persons(host: Any) -> None:
    tokens = host.sign_in()
    eve = User.objects.create_user("eve", password="correct horse battery")
    browser = Browser()
    browser.force_login(eve, backend="django.contrib.auth.backends.ModelBackend")

    browser.post(PAGE, {"key": Client.objects.get().pk})

    assert "127.0.0.1" not in browser.get(PAGE).content.decode()
    assert bearer.find(token=tokens["access_token"]) is not None


@pytest.mark.parametrize("key", ["", "x", "-1", "9" * 30, "१", "\0"])
def test_a_key_that_is_none_is_refused(host: Any, key: str) -> None:
    assert host.browser.post(PAGE, {"key": key}).status_code == 400


def test_the_page_is_for_people_who_signed_in(db: None) -> None:
    assert Browser().get(PAGE).status_code == 302
    assert Browser().post(PAGE, {"key": "1"}).status_code == 302


def kinds(confirmation: Confirmation) -> list[str]:
    return list(confirmation.events.values_list("kind", flat=True))


def asked_by(host: Any, user: User) -> tuple[Confirmation, Confirmation, Confirmation]:
    """A question, an approval that was not used, and one that was; of this program for this person."""
    agent = Principal(host.client_id, str(user.pk))
    pending, approved, spent = (
        make_pending(agent, action=replace(TRANSFER, name=name)) for name in ("a", "b", "c")
    )
    decide(approved, user)
    decide(spent, user)
    ledger.redeem(
        confirmation_id=spent.id,
        requester=agent,
        action=replace(TRANSFER, name="c"),
        redemption_key="1",
    )
    return pending, approved, spent


def states(*confirmations: Confirmation) -> list[tuple[str, str]]:
    for confirmation in confirmations:
        confirmation.refresh_from_db()
    return [(confirmation.status, confirmation.settled_reason) for confirmation in confirmations]


@pytest.mark.django_db(transaction=True)
def test_what_a_disconnected_program_asked_is_taken_back(new_host: Any) -> None:
    gone, kept = new_host(), new_host()
    gone.sign_in()
    mallory = User.objects.create_user("mallory")
    mine, others = asked_by(gone, gone.user), asked_by(gone, mallory)
    of_another_program = asked_by(kept, kept.user)

    gone.browser.post(PAGE, {"key": Client.objects.get(client_id=gone.client_id).pk})

    reason = "The program was disconnected."
    assert states(*mine) == [("cancelled", reason), ("revoked", reason), ("redeemed", "")]
    assert kinds(mine[0])[-1] == "cancelled"
    assert reason in mine[0].events.get(kind="cancelled").detail
    untouched = [("pending", ""), ("approved", ""), ("redeemed", "")]
    assert states(*others) == states(*of_another_program) == untouched


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["action", "form", "delete", "delete-several"])
def test_what_a_program_asked_is_taken_back_when_an_operator_shuts_it_out(
    host: Any, operator: Browser, way: str
) -> None:
    client = Client.objects.get()
    asked = asked_by(host, host.user)
    change, every = f"/admin/oauth/client/{client.pk}/", "/admin/oauth/client/"
    several = {"_selected_action": [client.pk], "post": "yes"}
    fields = {
        "client_id": client.client_id,
        "name": client.name,
        "redirect_uris": client.redirect_uris,
        "client_type": client.client_type,
        "authorization_grant_type": client.authorization_grant_type,
        "blocked": "on",
    }

    answer = {
        "action": lambda: operator.post(every, several | {"action": "block"}),
        "form": lambda: operator.post(f"{change}change/", fields),
        "delete": lambda: operator.post(f"{change}delete/", {"post": "yes"}),
        "delete-several": lambda: operator.post(every, several | {"action": "delete_selected"}),
    }[way]()

    assert answer.status_code == 302
    reason = f"The program was {'removed' if 'delete' in way else 'blocked'} by an operator."
    assert states(*asked) == [("cancelled", reason), ("revoked", reason), ("redeemed", "")]


@pytest.fixture
def operator(host: Any) -> Browser:
    User.objects.create_superuser("root", password="correct horse battery")
    browser = Browser()
    browser.force_login(
        User.objects.get(username="root"), backend="django.contrib.auth.backends.ModelBackend"
    )
    return browser


def test_an_operator_looks_at_tokens_and_writes_none(host: Any, operator: Browser) -> None:
    tokens, code = host.sign_in(), host.code()
    hidden = [tokens["access_token"], tokens["refresh_token"], code]
    hidden += [digest(value) for value in hidden]

    for model in (Code, AccessToken, RefreshToken):
        base = f"/admin/oauth/{model._meta.model_name}/"
        change = f"{base}{model.objects.latest('pk').pk}/change/"
        shown = operator.get(base).content.decode() + operator.get(change).content.decode()
        assert "127.0.0.1:33418" in shown
        assert not any(value in shown for value in hidden)
        assert operator.get(f"{base}add/").status_code == 403
        assert operator.post(change, {"scope": "confirm:admin"}).status_code == 403


def test_an_operator_blocks_a_host(host: Any, operator: Browser) -> None:
    token = host.sign_in()["access_token"]

    operator.post("/admin/oauth/client/", {"action": "block", "_selected_action": [Client.objects.get().pk]})

    assert bearer.find(token=token) is None


def test_a_name_in_the_operators_list_shows_what_is_hidden_in_it(host: Any, operator: Browser) -> None:
    host.register(client_name="good\u202eevil")

    page = operator.get("/admin/oauth/client/").content.decode()

    assert "\u202e" not in page
    assert "U+202E" in page


def test_an_operator_makes_a_host_with_the_grant_that_is_served(host: Any, operator: Browser) -> None:
    form = {"client_id": "theirs", "redirect_uris": "https://host.example/cb", "client_type": "public"}

    operator.post("/admin/oauth/client/add/", form | {"authorization_grant_type": "client-credentials"})

    made = Client.objects.get(client_id="theirs")
    assert (made.authorization_grant_type, made.client_secret) == ("authorization-code", "")

"""Connected programs: listed for whom they act for, and gone at once when disconnected."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from confirmhub.oauth import bearer, connections
from confirmhub.oauth.models import AccessToken, Client, Code, RefreshToken
from confirmhub.oauth.tokens import digest

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


def test_an_operator_can_make_a_client_with_the_grant_that_is_served(host: Any, operator: Browser) -> None:
    form = operator.get("/admin/oauth/client/add/").content.decode()

    assert "authorization-code" in form
    assert "client-credentials" not in form

"""Services in the admin: an operator makes, changes and blocks them, and sees each secret once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client as Browser

from confirmhub.oauth import bearer, services
from confirmhub.oauth.models import Client, Service
from confirmhub.oauth.scopes import BASE
from tests.oauth.conftest import AUDIENCE
from tests.oauth.test_services import ask

ADMIN = "/admin/oauth/service/"


@pytest.fixture
def operator(db: None) -> Browser:
    root = User.objects.create_superuser("root", password="correct horse battery")
    browser = Browser()
    browser.force_login(root, backend="django.contrib.auth.backends.ModelBackend")
    return browser


def secret_in(page: HttpResponse) -> str:
    found = re.findall(r"chcs_[A-Za-z0-9_-]{43}", page.content.decode())
    assert len(found) == 1
    return str(found[0])


def test_an_operator_makes_a_service_and_sees_its_secret_once(operator: Browser) -> None:
    form = operator.get(f"{ADMIN}add/").content.decode()
    ticked = re.findall(r'value="([a-z]+:[a-z]+)"[^>]*checked', form)

    page = operator.post(f"{ADMIN}add/", {"name": "Payments", "audience": AUDIENCE, "scopes": ticked})

    service = Service.objects.get()
    secret = secret_in(page)
    assert page["Cache-Control"] == "no-store"
    assert "messages" not in operator.cookies
    assert ticked == list(BASE)
    assert ask(service, secret).status_code == 200
    again = operator.get(ADMIN).content + operator.get(f"{ADMIN}{service.pk}/change/").content
    assert b"chcs_" not in again
    assert service.client_secret.encode() not in again
    assert service.client_secret.removeprefix("sha256$").encode() not in again


@pytest.mark.parametrize(
    "change",
    [{"audience": "http://payments.example/"}, {"scopes": ["nonsense"]}, {"scopes": []}, {"name": ""}],
)
def test_a_service_that_means_nothing_is_not_made(operator: Browser, change: dict[str, Any]) -> None:
    form = {"name": "Payments", "audience": AUDIENCE, "scopes": list(BASE), **change}

    assert operator.post(f"{ADMIN}add/", form).status_code == 200
    assert Service.objects.count() == 0


def test_the_form_for_a_service_speaks_to_operators_and_offers_what_it_can_use(operator: Browser) -> None:
    form = operator.get(f"{ADMIN}add/").content.decode()

    assert re.findall(r'type="checkbox" name="scopes" value="([a-z:]+)"', form) == list(BASE)
    for words in ("What it may do", "Its own URL", "Nothing is sent there", "Use a yes, once"):
        assert words in form
    assert "you approved" not in form
    assert 'name="blocked"' not in form


def test_an_operator_changes_what_a_service_may_do(operator: Browser, made: tuple[Service, str]) -> None:
    service, _ = made
    form = {"name": "Payments", "audience": AUDIENCE, "scopes": ["confirm:request"]}

    assert operator.post(f"{ADMIN}{service.pk}/change/", form).status_code == 302

    service.refresh_from_db()
    assert service.service_scope == "confirm:read confirm:request"
    assert ask(*made, scope="confirm:redeem").json()["error"] == "invalid_scope"


def test_a_new_secret_ends_the_old_one_and_its_tokens(operator: Browser, made: tuple[Service, str]) -> None:
    service, old = made
    token = ask(service, old).json()["access_token"]

    page = operator.post(ADMIN, {"action": "renew_secret", "_selected_action": [service.pk]})

    assert ask(service, old).status_code == 401
    assert bearer.find_for_api(token=token) is None
    assert ask(service, secret_in(page)).status_code == 200


def test_a_secret_is_renewed_for_one_program_at_a_time(operator: Browser, made: tuple[Service, str]) -> None:
    other, _ = services.create(name="Other", audience=AUDIENCE)

    operator.post(ADMIN, {"action": "renew_secret", "_selected_action": [made[0].pk, other.pk]})

    assert ask(*made).status_code == 200


def test_hosts_and_services_have_their_own_lists(
    host: Any, operator: Browser, made: tuple[Service, str]
) -> None:
    assert Service.objects.count() == 1
    hosts, listed = operator.get("/admin/oauth/client/").content, operator.get(ADMIN).content

    assert b"payments.example" in listed
    assert b"payments.example" not in hosts
    assert b"127.0.0.1:33418" in hosts
    assert b"127.0.0.1:33418" not in listed


def test_a_confidential_host_gets_its_secret_in_the_same_way(host: Any, operator: Browser) -> None:
    form = {
        "client_id": "their-client",
        "name": "Their host",
        "redirect_uris": "https://host.example/cb",
        "client_type": Client.CLIENT_CONFIDENTIAL,
    }
    page = operator.post("/admin/oauth/client/add/", form)
    host.client_id, host.redirect_uri = "their-client", "https://host.example/cb"
    code = host.code()

    assert host.redeem(code).status_code == 401
    assert host.redeem(code, client_secret=secret_in(page)).status_code == 200


def test_who_may_only_look_sees_all_but_the_secret(made: tuple[Service, str]) -> None:
    auditor = User.objects.create_user("auditor", is_staff=True)
    auditor.user_permissions.set(Permission.objects.filter(codename="view_service"))
    browser = Browser()
    browser.force_login(auditor, backend="django.contrib.auth.backends.ModelBackend")

    page = browser.get(f"{ADMIN}{made[0].pk}/change/")

    assert page.status_code == 200
    assert AUDIENCE in page.content.decode()
    assert "confirm:redeem" in page.content.decode()
    assert made[0].client_secret not in page.content.decode()
    assert browser.post(f"{ADMIN}{made[0].pk}/change/", {"name": "x"}).status_code == 403


def test_who_may_not_make_services_makes_none(made: tuple[Service, str]) -> None:
    staff = User.objects.create_user("staff", is_staff=True)
    browser = Browser()
    browser.force_login(staff, backend="django.contrib.auth.backends.ModelBackend")
    form = {"name": "Mine", "audience": AUDIENCE, "scopes": list(BASE)}

    assert browser.post(f"{ADMIN}add/", form).status_code == 403
    assert (
        browser.post(ADMIN, {"action": "renew_secret", "_selected_action": [made[0].pk]}).status_code == 403
    )
    assert Service.objects.count() == 1

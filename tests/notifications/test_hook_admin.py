"""Operators write down where a service hears of its confirmations; what could not work is refused there."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django import Settings

from confirmhub.confirmations.models import Hook
from confirmhub.confirmations.roles import ADMINISTRATORS, AUDITORS
from confirmhub.notifications.channels.webhook import new_secret
from confirmhub.oauth import services
from confirmhub.oauth.models import Service
from tests.factories import make_user

ADD = "/admin/confirmations/hook/add/"


@pytest.fixture
def service(db: None) -> Service:
    return services.create(name="Payments", audience="https://payments.example/api")[0]


def browser_of(role: str) -> Client:
    person = make_user(role.lower(), is_staff=True)
    person.groups.add(Group.objects.get(name=role))
    browser = Client()
    browser.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return browser


def form(service: Service, **fields: str) -> dict[str, str]:
    url = "https://payments.example/hook"
    return {"client_id": service.client_id, "url": url, "secrets": new_secret(), "is_active": "on"} | fields


def test_an_administrator_makes_a_hook_with_the_secret_that_the_form_offers(service: Service) -> None:
    browser = browser_of(ADMINISTRATORS)
    offered = re.search(r"whsec_[A-Za-z0-9+/=]+", browser.get(ADD).content.decode())
    assert offered

    answer = browser.post(ADD, form(service, secrets=offered[0]))

    assert answer.status_code == 302, answer.content.decode()
    hook = Hook.objects.get()
    assert (hook.client_id, hook.secrets, hook.is_active) == (service.client_id, offered[0], True)
    listed = browser.get("/admin/confirmations/hook/").content.decode()
    assert "https://payments.example/hook" in listed
    assert offered[0] not in listed


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "http://payments.example/hook"},
        {"url": "https://127.0.0.1/hook"},
        {"url": "https://user:pw@payments.example/"},
        {"url": "javascript:alert(1)"},
        {"url": "https://payments.example/#x"},
        {"secrets": "hunter2"},
        {"secrets": "whsec_AAAA"},
        {"secrets": ""},
        {"secrets": "\n".join(new_secret() for _ in range(4))},
        {"client_id": "nobody"},
    ],
)
def test_what_could_not_work_is_refused(service: Service, settings: Settings, fields: dict[str, str]) -> None:
    settings.WEBHOOKS_TO_LOOPBACK = False

    answer = browser_of(ADMINISTRATORS).post(ADD, form(service, **fields))

    assert answer.status_code == 200
    assert not Hook.objects.exists()


def test_who_may_only_look_sees_no_secret(service: Service) -> None:
    secret = new_secret()
    hook = Hook.objects.create(client_id=service.client_id, url="https://p.example/", secrets=secret)
    auditor = browser_of(AUDITORS)

    seen = auditor.get(f"/admin/confirmations/hook/{hook.pk}/change/").content.decode()

    assert "https://p.example/" in seen
    assert secret not in seen
    assert auditor.get(ADD).status_code == 403
    assert auditor.post(ADD, form(service)).status_code == 403


def test_there_is_one_hook_a_service(service: Service, admin_user: User) -> None:
    browser = browser_of(ADMINISTRATORS)
    browser.post(ADD, form(service))

    assert browser.post(ADD, form(service)).status_code == 200
    assert Hook.objects.count() == 1

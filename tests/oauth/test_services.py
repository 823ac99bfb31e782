"""Services: made by operators alone, for one audience, without a person, and never more than was chosen."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.test import Client as Browser
from django.utils import timezone

from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import bearer, client_secrets, clients, housekeeping, services, throttle, validator
from confirmhub.oauth.models import AccessToken, Client, RefreshToken, Service
from confirmhub.oauth.scopes import BASE
from tests.oauth import lookup
from tests.oauth.conftest import AUDIENCE


def basic(client_id: str, secret: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{client_id}:{secret}'.encode()).decode()}"}


def ask(service: Client, secret: str, *, in_body: bool = False, **fields: Any) -> HttpResponse:
    """A token, asked for as the service would."""
    form = {"grant_type": "client_credentials", "scope": " ".join(BASE), **fields}
    form = {name: value for name, value in form.items() if value is not None}
    if in_body:
        return Browser().post(
            "/oauth/token", {**form, "client_id": service.client_id, "client_secret": secret}
        )
    return Browser().post("/oauth/token", form, headers=basic(service.client_id, secret))


@pytest.mark.parametrize("in_body", [False, True], ids=["basic", "post"])
def test_a_service_gets_a_token_for_its_own_audience(made: tuple[Service, str], *, in_body: bool) -> None:
    service, secret = made

    answer = ask(service, secret, in_body=in_body)

    assert answer.status_code == 200
    assert "refresh_token" not in answer.json()
    assert RefreshToken.objects.count() == 0
    found = bearer.find_for_api(token=answer.json()["access_token"])
    assert found is not None
    assert found.principal == Principal(service.client_id, f"client:{service.client_id}")
    assert (found.audience, found.is_service) == (AUDIENCE, True)
    assert found.scopes == set(BASE)
    assert AccessToken.objects.get().resource == [AUDIENCE]


def test_a_services_token_opens_nothing_of_mcp(settings: Any, made: tuple[Service, str]) -> None:
    for service, secret in (made, services.create(name="Ours", audience=settings.MCP_RESOURCE)):
        token = ask(service, secret).json()["access_token"]

        assert lookup.find(token=token) is None
        assert bearer.find_for_api(token=token) is not None


def test_a_persons_token_is_good_for_the_api_and_says_so(host: Any, settings: Any) -> None:
    token = host.sign_in()["access_token"]

    found = bearer.find_for_api(token=token)

    assert found == lookup.find(token=token)
    assert found is not None
    assert (found.audience, found.is_service) == (settings.MCP_RESOURCE, False)


@pytest.mark.parametrize("resource", [AUDIENCE, "https://PAYMENTS.example:443/mcp/", None])
def test_a_service_may_name_its_audience_or_not(made: tuple[Service, str], resource: str | None) -> None:
    answer = ask(*made, resource=resource)

    assert answer.status_code == 200
    assert AccessToken.objects.get().resource == [AUDIENCE]


@pytest.mark.parametrize(
    "resource",
    [
        "http://localhost:8000/mcp",
        "https://payments.example/other",
        "https://evil.example/",
        "",
        [AUDIENCE, "x"],
    ],
)
def test_a_service_gets_no_token_for_another_audience(made: tuple[Service, str], resource: Any) -> None:
    answer = ask(*made, resource=resource)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_target")
    assert AccessToken.objects.count() == 0


def test_no_scope_asked_for_means_the_least_for_a_service_too(made: tuple[Service, str]) -> None:
    assert ask(*made, scope=None).json()["scope"] == "confirm:read"


@pytest.mark.parametrize("scope", ["files:delete", "confirm:admin", "confirm:read files:delete", "nonsense"])
def test_a_service_gets_no_scope_that_was_not_chosen_for_it(made: tuple[Service, str], scope: str) -> None:
    assert ask(*made, scope=scope).json()["error"] == "invalid_scope"


@pytest.mark.django_db
def test_a_service_gets_a_scope_of_files_where_an_operator_chose_it() -> None:
    service, secret = services.create(name="Files", audience=AUDIENCE, scopes=["files:delete"])

    assert ask(service, secret, scope="files:delete confirm:read").status_code == 200
    assert ask(service, secret, scope="confirm:request").json()["error"] == "invalid_scope"


@pytest.mark.django_db
def test_a_service_that_gets_a_token_for_each_call_is_told_to_keep_one(
    made: tuple[Service, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = services.create(name="Other", audience=AUDIENCE)
    few = throttle.Limit(what="service-token", count=2, within=timedelta(hours=1))
    monkeypatch.setattr(validator, "SERVICE_TOKENS", few)

    answers = [ask(*made) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].json()["error"] == "temporarily_unavailable"
    assert int(answers[2]["Retry-After"]) > 0
    assert AccessToken.objects.count() == 2
    assert ask(*other).status_code == 200


@pytest.mark.parametrize("secret", ["", "wrong", "sha256$" + "0" * 64, "\0", "ü"])
def test_a_wrong_secret_gets_nothing(made: tuple[Service, str], secret: str) -> None:
    service, _ = made

    for answer in (
        ask(service, secret),
        ask(service, service.client_secret),
        ask(service, secret, in_body=True),
    ):
        assert answer.status_code in (400, 401)
    assert AccessToken.objects.count() == 0


def test_a_secret_is_stored_as_a_digest_alone(made: tuple[Service, str]) -> None:
    service, secret = made

    assert secret not in service.client_secret
    assert service.client_secret == client_secrets.stored(secret)
    with pytest.raises(IntegrityError, match="client_secret_not_in_clear"), transaction.atomic():
        Client.objects.filter(pk=service.pk).update(client_secret=secret)


@pytest.mark.parametrize(
    "grant",
    [
        {"grant_type": "refresh_token", "refresh_token": "x"},
        {"grant_type": "authorization_code", "code": "x", "redirect_uri": "https://payments.example/"},
    ],
)
def test_a_service_has_no_other_grant(made: tuple[Service, str], grant: dict[str, str]) -> None:
    answer = ask(*made, **grant)

    assert answer.status_code == 400
    assert AccessToken.objects.count() == 0


def test_nobody_can_be_sent_to_consent_to_a_service(host: Any, made: tuple[Service, str]) -> None:
    page = host.page(client_id=made[0].client_id, redirect_uri="https://payments.example/")

    assert page.status_code == 400
    assert "Location" not in page


def test_a_program_that_people_sign_in_to_is_no_service(host: Any) -> None:
    secret = client_secrets.make()
    Client.objects.update(client_type=Client.CLIENT_CONFIDENTIAL, client_secret=client_secrets.stored(secret))

    answer = ask(Client.objects.get(), secret)

    assert (answer.status_code, answer.json()["error"]) == (400, "unauthorized_client")
    assert AccessToken.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("source", [Client.RegistrationSource.DCR, Client.RegistrationSource.CIMD])
def test_the_database_keeps_no_service_that_registered_itself(source: str) -> None:
    service, _ = services.create(name="Payments", audience=AUDIENCE)

    for change in (
        {"registration_source": source},
        {"client_type": Client.CLIENT_PUBLIC},
        {"client_secret": ""},
        {"audience": ""},
        {"service_scope": ""},
        {"redirect_uris": "https://payments.example/"},
        {"authorization_grant_type": Client.GRANT_AUTHORIZATION_CODE},
        {"authorization_grant_type": Client.GRANT_PASSWORD},
    ):
        with pytest.raises(IntegrityError, match="client_is_host_or_service"), transaction.atomic():
            Client.objects.filter(pk=service.pk).update(**change)


def test_a_blocked_service_is_out_at_once(made: tuple[Service, str]) -> None:
    token = ask(*made).json()["access_token"]
    assert bearer.find_for_api(token=token) is not None

    Client.objects.update(blocked=True)

    assert bearer.find_for_api(token=token) is None
    assert ask(*made).status_code == 401


def test_what_an_operator_takes_from_a_service_its_tokens_lose_at_once(made: tuple[Service, str]) -> None:
    service, _ = made
    token = ask(*made).json()["access_token"]

    Client.objects.update(service_scope="confirm:read")
    found = bearer.find_for_api(token=token)
    assert found is not None
    assert found.scopes == {"confirm:read"}

    Client.objects.update(audience="https://moved.example/mcp")
    assert bearer.find_for_api(token=token) is None

    service.delete()
    assert bearer.find_for_api(token=token) is None


def test_a_services_token_ends_and_is_swept(made: tuple[Service, str]) -> None:
    token = ask(*made).json()["access_token"]
    AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1))

    assert bearer.find_for_api(token=token) is None
    housekeeping.sweep()
    assert AccessToken.objects.count() == 0
    assert Service.objects.count() == 1


def test_a_service_revokes_its_token(made: tuple[Service, str]) -> None:
    service, secret = made
    token = ask(*made).json()["access_token"]

    answer = Browser().post("/oauth/revoke", {"token": token}, headers=basic(service.client_id, secret))

    assert answer.status_code == 200
    assert bearer.find_for_api(token=token) is None


def test_a_service_is_named_to_people_by_its_audience(made: tuple[Service, str]) -> None:
    label = clients.describe(client_id=made[0].client_id)

    assert (label.host, label.verified, label.name) == ("payments.example", True, "Payments")

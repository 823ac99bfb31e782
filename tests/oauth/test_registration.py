"""How programs make themselves known: by registration and by document, safely, and not too often."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.test import Client as Browser
from django.utils import timezone

from confirmhub.oauth import clients, documents, housekeeping, throttle, views
from confirmhub.oauth.models import AccessToken, Client, Tally
from tests.oauth import lookup


def register(body: object) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body)
    return Browser().post("/oauth/register", raw, content_type="application/json")


GOOD = {"client_name": "A host", "redirect_uris": ["http://localhost:8787/cb"]}


@pytest.mark.django_db
def test_a_registration_answers_what_was_registered() -> None:
    answer = register(GOOD)

    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    fields = answer.json()
    assert fields["redirect_uris"] == GOOD["redirect_uris"]
    assert fields["token_endpoint_auth_method"] == "none"
    assert fields["grant_types"] == ["authorization_code", "refresh_token"]
    assert fields["response_types"] == ["code"]
    assert fields["client_id_issued_at"] > 1_700_000_000
    assert not {"client_secret", "registration_access_token", "registration_client_uri"} & set(fields)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wish",
    [
        {"grant_types": ["client_credentials"]},
        {"grant_types": ["password"]},
        {"response_types": ["token"]},
        {"redirect_uris": []},
        {"redirect_uris": ["http://evil.example/cb"]},
        {
            "redirect_uris": [
                "cursor://cb",
                "javascript:x",
                "https://host.example/\n",
                "https://a.example/\ud800",
            ]
        },
        {"redirect_uris": [f"https://host.example/{n}" for n in range(2000)]},
        {"client_name": ["x"]},
        {"client_name": "x\0"},
    ],
)
def test_a_registration_that_we_cannot_serve_is_refused(wish: dict[str, Any]) -> None:
    answer = register({**GOOD, **wish})

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
    assert not Client.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"a": 1, "a": 2}', b"\xff", b"[" * 60_000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    assert register(body).status_code == 400


@pytest.mark.django_db
def test_what_a_host_wishes_for_beside_is_dropped_not_fatal() -> None:
    answer = register(
        {
            "redirect_uris": ["cursor://cb", "https://www.cursor.com/cb", "http://localhost:8787/cb"],
            "grant_types": [
                "authorization_code",
                "refresh_token",
                "urn:ietf:params:oauth:grant-type:device_code",
            ],
            "token_endpoint_auth_method": "client_secret_basic",
            "scope": "confirm:admin",
        }
    )

    assert answer.status_code == 201
    assert answer.json()["redirect_uris"] == ["https://www.cursor.com/cb", "http://localhost:8787/cb"]
    assert answer.json()["token_endpoint_auth_method"] == "none"
    assert "confirm:admin" not in answer.json()["scope"]


@pytest.mark.django_db
def test_a_registration_mints_nothing_that_opens_a_door() -> None:
    client_id = register(GOOD).json()["client_id"]

    assert not AccessToken.objects.exists()
    for secret in ("", "x"):
        answer = Browser().post(
            "/oauth/token",
            {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret},
        )
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert Browser().get(f"/oauth/register/{client_id}").status_code == 404


@pytest.mark.django_db
def test_an_empty_secret_proves_nothing() -> None:
    client_id = register(GOOD).json()["client_id"]

    answer = Browser().post(
        "/oauth/revoke",
        {"token": "x"},
        headers={"Authorization": f"Basic {base64.b64encode(f'{client_id}:'.encode()).decode()}"},
    )

    assert answer.status_code == 401


@pytest.mark.django_db
def test_registrations_of_one_address_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        views, "REGISTRATIONS", throttle.Limit(what="register", count=2, within=timedelta(hours=1))
    )

    answers = [register(GOOD) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert 0 < int(answers[2]["Retry-After"]) <= 3600


@pytest.mark.django_db
def test_refused_token_requests_of_one_address_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        views, "REFUSALS", throttle.Limit(what="token-refused", count=2, within=timedelta(hours=1))
    )
    form = {"grant_type": "authorization_code", "code": "guess", "client_id": "x"}

    statuses = [Browser().post("/oauth/token", form).status_code for _ in range(3)]

    assert statuses == [401, 401, 429]
    assert Browser().post("/oauth/token", form, REMOTE_ADDR="192.0.2.7").status_code == 401


@pytest.mark.django_db
def test_windows_that_are_over_are_forgotten() -> None:
    limit = throttle.Limit(what="x", count=1, within=timedelta(hours=1))
    assert throttle.count(limit, who="a") == 0
    assert throttle.count(limit, who="a") > 0
    assert throttle.wait(limit, who="a") > 0
    assert throttle.wait(limit, who="b") == 0
    Tally.objects.update(ends_at=timezone.now() - timedelta(seconds=1))

    assert throttle.sweep() == 1
    assert throttle.wait(limit, who="a") == 0


def test_clients_that_were_never_used_are_swept(new_host: Any) -> None:
    used, unused, blocked, fresh = new_host(), new_host(), new_host(), new_host()
    used.sign_in()
    Client.objects.filter(client_id=blocked.client_id).update(blocked=True)
    Client.objects.exclude(client_id=fresh.client_id).update(created=timezone.now() - timedelta(days=8))

    housekeeping.sweep()

    left = set(Client.objects.values_list("client_id", flat=True))
    assert left == {used.client_id, blocked.client_id, fresh.client_id}
    assert unused.client_id not in left


@pytest.mark.django_db
def test_a_client_that_skips_consent_cannot_be_stored() -> None:
    with pytest.raises(IntegrityError, match="client_never_skips_consent"):
        Client.objects.create(
            client_id="x",
            client_type=Client.CLIENT_PUBLIC,
            authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
            skip_authorization=True,
        )


@pytest.mark.parametrize(
    "uri",
    [
        "http://evil.example/cb", "http://192.168.0.2/cb", "http://localhost.evil/cb", "ftp://host.example/",
        "cursor://cb", "javascript:alert(1)", "//host.example/", "https:///cb", "",
        "https://u@host.example/cb", "https://host.example/cb#f", "https://host.example/a b", "https://host.example/\\evil",
        "https://host.example:x/", "https://hоst.example/", "https://host.example;x/", "https://h'ost.example/",
    ],
)  # fmt: skip
def test_an_operator_cannot_register_an_unsafe_redirect_either(uri: str) -> None:
    client = Client(
        client_id="x",
        redirect_uris=uri,
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
    )

    with pytest.raises(ValidationError):
        client.clean()


# --- clients known by their document


def test_real_hosts_sign_in_by_their_documents(host: Any, online: Any, real_host: Any) -> None:
    client_id, fields = real_host
    host.client_id, host.redirect_uri = client_id, fields["redirect_uris"][0]

    page = host.page()
    tokens = host.sign_in()

    assert f"claude.test:{online.port}" in page.content.decode()
    assert "Host verified" in page.content.decode()
    assert fields["client_name"] in page.content.decode()
    found = lookup.find(token=tokens["access_token"])
    assert found is not None
    assert found.principal.client_id == client_id
    assert len(online.asked) == 1
    label = clients.describe(client_id=client_id)
    assert (label.host, label.verified) == (f"claude.test:{online.port}", True)


def test_a_document_is_never_fetched_for_somebody_who_is_not_signed_in(
    host: Any, online: Any, real_host: Any
) -> None:
    host.client_id = real_host[0]

    Browser().get(host.url())
    Browser().get(host.url(prompt="none"))
    host.token(grant_type="authorization_code", code="x", code_verifier="y")
    Browser().post("/oauth/revoke", {"client_id": host.client_id, "token": "x"})

    assert online.asked == []
    assert not Client.objects.filter(client_id=host.client_id).exists()


def test_a_failed_fetch_is_not_tried_again_at_once(host: Any, online: Any) -> None:
    host.client_id = online.url("/nothing.json")
    online.pages["/nothing.json"] = lambda handler: handler.send_error(404)

    pages = [host.page(), host.page()]

    assert [page.status_code for page in pages] == [400, 400]
    assert len(online.asked) == 1


def test_the_fetches_of_one_person_are_limited(
    host: Any, online: Any, publish: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        documents, "FETCHES", throttle.Limit(what="document", count=1, within=timedelta(hours=1))
    )
    for number in range(2):
        host.client_id = publish(f"/{number}.json", **GOOD)
        host.page()

    assert len(online.asked) == 1


def test_a_stale_document_is_fetched_again_and_its_redirects_follow(
    host: Any, online: Any, publish: Any
) -> None:
    host.client_id = publish("/client.json", client_name="A", redirect_uris=["https://a.example/cb"])
    host.redirect_uri = "https://a.example/cb"
    assert host.page().status_code == 200
    publish("/client.json", client_name="B", redirect_uris=["https://b.example/cb"])
    assert host.page().status_code == 200

    Client.objects.filter(client_id=host.client_id).update(cimd_expires_at=timezone.now())

    assert host.page().status_code == 400
    host.redirect_uri = "https://b.example/cb"
    assert host.page().status_code == 200
    assert len(online.asked) == 2


def test_a_known_client_outlives_a_failed_fetch(host: Any, online: Any, publish: Any) -> None:
    host.client_id = publish("/client.json", client_name="A", redirect_uris=["https://a.example/cb"])
    host.redirect_uri = "https://a.example/cb"
    host.page()
    Client.objects.filter(client_id=host.client_id).update(cimd_expires_at=timezone.now())
    online.pages["/client.json"] = lambda handler: handler.send_error(500)

    assert host.page().status_code == 200


def test_a_document_never_takes_over_a_client_that_an_operator_made(
    host: Any, online: Any, publish: Any
) -> None:
    client_id = publish("/client.json", client_name="Taker", redirect_uris=["https://evil.example/cb"])
    Client.objects.filter(client_id=host.client_id).update(
        client_id=client_id, registration_source=Client.RegistrationSource.MANUAL
    )
    host.client_id = client_id

    assert host.page().status_code == 200
    assert online.asked == []
    assert Client.objects.get(client_id=client_id).name == "Test host"


def test_a_busy_server_does_not_wait_for_documents(
    host: Any, online: Any, publish: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.client_id = publish("/client.json", **GOOD)
    taken = [documents._slots.acquire(blocking=False) for _ in range(3)]
    try:
        assert host.page().status_code == 400
        assert online.asked == []
    finally:
        for _ in filter(None, taken):
            documents._slots.release()


@pytest.mark.django_db
@pytest.mark.parametrize("client_id", ["", "nobody", "nul\0", "\ud800", "ü", "https://a.example/c"])
def test_a_client_that_nobody_knows_can_still_be_described(client_id: str) -> None:
    label = clients.describe(client_id=client_id)

    assert (label.host, label.verified, label.since) == ("unknown", False, None)

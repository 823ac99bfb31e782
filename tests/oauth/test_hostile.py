"""No request, however odd, makes an endpoint fail: it is refused, or served."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client as Browser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from confirmhub.oauth.models import AccessToken, Client

NAMES = st.sampled_from(
    [
        "response_type", "client_id", "client_secret", "redirect_uri", "scope", "state", "code", "resource",
        "code_verifier", "code_challenge", "code_challenge_method", "grant_type", "refresh_token", "claims",
        "response_mode", "prompt", "nonce", "request", "request_uri", "token", "token_type_hint", "max_age",
        "ui_locales", "verdict", "approval_prompt", "id_token_hint", "login_hint", "username", "password",
        "device_code",
    ]
)  # fmt: skip
WORDS = st.sampled_from(
    [
        "code", "authorization_code", "refresh_token", "client_credentials", "S256", "plain", "none", "allow",
        "A" * 43, "v" * 60,
        "confirm:read", "http://127.0.0.1:33418/callback", "http://localhost:8000/mcp", "https://a.example/c",
    ]
)  # fmt: skip
VALUES = WORDS | st.text(max_size=60)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=8,
)
ODD = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def encoded(fields: list[tuple[str, str]]) -> str:
    return "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in fields)


def check(answer: Any) -> None:
    assert answer.status_code in (200, 201, 302, 400, 401, 429), (answer.status_code, answer.content)


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd requests are the point here, however many."""
    monkeypatch.setattr("confirmhub.oauth.throttle.wait", lambda *_, **__: 0)
    monkeypatch.setattr("confirmhub.oauth.throttle.count", lambda *_, **__: 0)
    monkeypatch.setattr("confirmhub.oauth.documents.ensure", lambda **_: None)


@ODD
@given(fields=FIELDS, raw=st.none() | st.binary(max_size=60))
def test_the_token_and_revocation_endpoints_stand(
    host: Any, fields: list[tuple[str, str]], raw: bytes | None
) -> None:
    body = encoded([("client_id", host.client_id), *fields]) if raw is None else raw

    for path in ("/oauth/token", "/oauth/revoke"):
        check(host.browser.post(path, body, content_type="application/x-www-form-urlencoded"))
    assert not AccessToken.objects.exists()


@ODD
@given(fields=FIELDS, text=st.none() | st.text(max_size=60))
def test_the_authorization_endpoint_stands(
    host: Any, fields: list[tuple[str, str]], text: str | None
) -> None:
    good = host.url().partition("?")[2]
    query = (
        f"{good}&{encoded(fields)}"
        if text is None
        else quote(text.encode("utf-8", "replace"), safe="%&=;+?#/")
    )

    check(host.browser.get(f"/oauth/authorize?{query}"))
    check(host.browser.post(f"/oauth/authorize?{query}", {"verdict": "deny"}))
    check(Browser().get(f"/oauth/authorize?{query}"))


@ODD
@given(
    document=st.dictionaries(
        st.sampled_from(
            [
                "client_name",
                "redirect_uris",
                "grant_types",
                "response_types",
                "token_endpoint_auth_method",
                "scope",
            ]
        )
        | st.text(max_size=8),
        JSON,
        max_size=6,
    ),
    redirects=st.none() | st.lists(VALUES, max_size=4),
)
def test_the_registration_endpoint_stands(
    host: Any, document: dict[str, Any], redirects: list[str] | None
) -> None:
    wish = document if redirects is None else {**document, "redirect_uris": redirects}

    check(host.browser.post("/oauth/register", wish, content_type="application/json"))
    for client in Client.objects.all():
        client.clean()


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
@pytest.mark.parametrize("credentials", ["Basic \xff", "Bearer \xff", "Basic YQ==\xe9", "\xff"])
def test_credentials_that_are_not_ascii_are_refused(host: Any, path: str, credentials: str) -> None:
    fields = {"grant_type": "refresh_token", "refresh_token": "x", "token": "x", "client_id": host.client_id}

    answer = Browser().post(path, fields, headers={"authorization": credentials})

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")

"""The metadata document: true, complete, and the same whatever the Host header says."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from django.urls import Resolver404, resolve

from confirmhub.oauth.scopes import SCOPES

PATH = "/.well-known/oauth-authorization-server"


def test_the_document_says_what_is_true() -> None:
    answer = Browser().get(PATH)

    assert answer.json() == {
        "issuer": "http://localhost:8000",
        "authorization_endpoint": "http://localhost:8000/oauth/authorize",
        "token_endpoint": "http://localhost:8000/oauth/token",
        "registration_endpoint": "http://localhost:8000/oauth/register",
        "revocation_endpoint": "http://localhost:8000/oauth/revoke",
        "scopes_supported": sorted(set(SCOPES) - {"confirm:admin"}),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
    }
    assert answer["Access-Control-Allow-Origin"] == "*"


def test_the_host_header_changes_nothing(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]

    answer = Browser().get(PATH, headers={"Host": "evil.example"})

    assert "evil.example" not in answer.content.decode()


def test_every_endpoint_it_names_is_there() -> None:
    for key, url in Browser().get(PATH).json().items():
        if key.endswith("_endpoint"):
            resolve(url.removeprefix("http://localhost:8000"))


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/anything",
        "/oauth/introspect",
        "/oauth/device-authorization",
        "/oauth/userinfo",
        "/oauth/logout",
        "/oauth/applications/",
        "/oauth/authorized_tokens/",
        "/oauth/register/x",
    ],
)
def test_no_other_endpoint_of_the_toolkit_is_mounted(path: str) -> None:
    with pytest.raises(Resolver404):
        resolve(path)


@pytest.mark.parametrize("path", [PATH, "/oauth/token", "/oauth/register", "/oauth/revoke"])
def test_a_page_of_any_origin_may_ask_first(path: str) -> None:
    answer = Browser().options(path, headers={"Origin": "https://inspector.example"})

    assert answer.status_code == 200
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer


@pytest.mark.parametrize("method", ["get", "head", "put", "delete"])
@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/oauth/register"])
def test_an_endpoint_that_is_asked_the_wrong_way_says_how_to_ask(path: str, method: str) -> None:
    answer = getattr(Browser(), method)(path)

    assert answer.status_code == 405
    assert set(answer["Allow"].split(", ")) == {"POST", "OPTIONS"}
    assert answer["Content-Type"] == "application/json"
    if method != "head":
        assert answer.json() == {
            "error": "invalid_request",
            "error_description": f"Use one of: {answer['Allow']}.",
        }


def test_the_metadata_is_there_to_be_read_alone() -> None:
    answer = Browser().post(PATH)

    assert (answer.status_code, answer.json()["error"]) == (405, "invalid_request")


def test_the_consent_page_is_for_nobody_elses_origin(host: Any) -> None:
    assert "Access-Control-Allow-Origin" not in host.page()

"""The consent page shows who asks and where the answer goes, nothing skips it, and answers name us."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client as Browser

from confirmhub.oauth.models import AccessToken, Client, Code


def text(page: Any) -> str:
    assert page.status_code == 200, page.content
    return " ".join(page.content.decode().split())


def test_the_page_names_host_account_redirect_and_scopes_in_words(host: Any) -> None:
    page = text(host.page())

    assert 'Let <bdi dir="ltr">127.0.0.1:33418</bdi> act for you?' in page
    assert "Not verified" in page
    assert "Test host" in page
    assert "ada" in page
    assert "Ask you to confirm an action" in page
    assert "Any program there can ask in this way" in page


def test_a_web_redirect_carries_no_loopback_warning(host: Any) -> None:
    host.redirect_uri = "https://host.example/cb"
    host.register()

    page = text(host.page())

    assert '<bdi class="v" dir="ltr">host.example</bdi>' in page
    assert "Any program there can ask in this way" not in page


def test_a_name_cannot_pass_for_words_of_ours(host: Any) -> None:
    host.register(client_name="\u202eLet bank act</bdi><b>verified</b>")

    page = text(host.page())

    assert "\u202e" not in page
    assert "U+202E" in page
    assert "<b>verified</b>" not in page


def test_scopes_beyond_the_earlier_consent_are_marked_as_new(host: Any) -> None:
    assert 'class="tag warn">new' not in text(host.page())
    host.sign_in(scope="confirm:read confirm:request")

    page = text(host.page(scope="confirm:read confirm:request files:delete"))

    assert page.count('class="tag warn">new') == 1
    assert 'each only after you confirm it <span class="tag warn">new</span>' in page


@pytest.mark.parametrize("extra", [{"approval_prompt": "auto"}, {"prompt": "login"}, {"prompt": "consent"}])
def test_nothing_in_the_url_skips_the_page(host: Any, extra: dict[str, str]) -> None:
    host.sign_in()

    assert "Deny" in text(host.page(**extra))
    assert Code.objects.filter(redeemed_at=None).count() == 0


def test_opening_the_page_decides_nothing(host: Any) -> None:
    host.page()
    host.browser.head(host.url())

    assert not Code.objects.exists()


def test_the_page_asks_to_sign_in_first_and_comes_back(host: Any) -> None:
    answer = Browser().get(host.url())

    assert answer.status_code == 302
    assert urlsplit(answer["Location"]).path == "/sign-in"
    assert "?next=/oauth/authorize%3F" in answer["Location"]


def test_a_verdict_needs_the_page_of_this_browser(host: Any) -> None:
    strict = Browser(enforce_csrf_checks=True)
    strict.force_login(host.user, backend="django.contrib.auth.backends.ModelBackend")

    assert strict.post(host.url(), {"verdict": "allow"}).status_code == 403
    assert not Code.objects.exists()


@pytest.mark.parametrize(
    "form", [{}, {"verdict": "yes"}, {"allow": "on"}, {"verdict": "allow", "scope": "x"}]
)
def test_an_incomplete_form_allows_nothing(host: Any, form: dict[str, str]) -> None:
    answer = host.browser.post(host.url(), form)

    assert answer.status_code == 400
    assert not Code.objects.exists()


def test_allow_goes_back_with_code_state_and_issuer(host: Any, back: Any, settings: Any) -> None:
    answer = host.decide("allow")

    sent = back(answer)
    assert answer["Location"].startswith(host.redirect_uri + "?")
    assert set(sent) == {"code", "state", "iss"}
    assert (sent["state"], sent["iss"]) == ("st-1", settings.ISSUER)


def test_deny_goes_back_with_an_error_and_issuer(host: Any, back: Any, settings: Any) -> None:
    sent = back(host.decide("deny"))

    assert (sent["error"], sent["state"], sent["iss"]) == ("access_denied", "st-1", settings.ISSUER)
    assert not Code.objects.exists()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"scope": "confirm:everything"}, "invalid_scope"),
        ({"scope": "confirm:admin"}, "invalid_scope"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
        ({"resource": ""}, "invalid_target"),
        ({"resource": ["http://localhost:8000/mcp", "https://evil.example/mcp"]}, "invalid_target"),
        ({"resource": "http://localhost:8000/mcp#f"}, "invalid_target"),
        ({"resource": "http://localhost:8000/mcp?x=1"}, "invalid_target"),
        ({"resource": "http://u@localhost:8000/mcp"}, "invalid_target"),
        ({"resource": "http://localhost:8000/"}, "invalid_target"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "c" * 300}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "S512"}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_type": "token"}, "unauthorized_client"),
        ({"response_type": None}, "invalid_request"),
        ({"prompt": "none"}, "consent_required"),
    ],
)
def test_a_wrong_request_goes_back_with_its_error_state_and_issuer(
    host: Any, back: Any, settings: Any, change: dict[str, Any], error: str
) -> None:
    sent = back(host.page(**change))

    assert sent["error"] == error
    assert (sent["state"], sent["iss"]) == ("st-1", settings.ISSUER)


def test_a_silent_request_of_nobody_goes_back_as_login_required(host: Any, back: Any, settings: Any) -> None:
    sent = back(Browser().get(host.url(prompt="none")))

    assert (sent["error"], sent["state"], sent["iss"]) == ("login_required", "st-1", settings.ISSUER)


@pytest.mark.parametrize("resource", ["HTTP://LOCALHOST:8000/mcp", "http://localhost:8000/mcp/"])
def test_another_spelling_of_our_resource_is_ours(host: Any, resource: str, settings: Any) -> None:
    host.redeem(host.code(resource=resource), resource=resource)

    assert AccessToken.objects.get().resource == [settings.MCP_RESOURCE]


@pytest.mark.parametrize(
    "change",
    [
        {"client_id": "nobody"},
        {"client_id": None},
        {"client_id": "nul\0"},
        {"client_id": "https://unknown.example/client.json"},
        {"redirect_uri": "https://evil.example/cb"},
        {"redirect_uri": "http://127.0.0.1:33418/other"},
        {"redirect_uri": "http://127.0.0.1:33418/callback?x=1"},
        {"redirect_uri": "http://127.0.0.1:33418/callback#f"},
        {"redirect_uri": "http://localhost:33418/callback"},
        {"redirect_uri": "http://x@127.0.0.1:33418/callback"},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": "\0"},
        {"redirect_uri": ["http://127.0.0.1:33418/callback", "https://evil.example/cb"]},
    ],
)
@pytest.mark.parametrize("method", ["get", "post", "silent"])
def test_nobody_is_sent_to_an_address_that_is_not_the_clients(
    host: Any, change: dict[str, Any], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("confirmhub.oauth.documents.ensure", lambda **_: None)
    if method == "post":
        answer = host.decide(**change)
    elif method == "get":
        answer = host.page(**change)
    else:
        answer = Browser().get(host.url(prompt="none", **change))

    assert answer.status_code == 400
    assert "Location" not in answer
    assert not Code.objects.exists()


def test_a_loopback_port_may_differ_from_the_registered_one(host: Any, back: Any) -> None:
    host.redirect_uri = "http://127.0.0.1:51004/callback"

    answer = host.decide()

    assert answer["Location"].startswith("http://127.0.0.1:51004/callback?")
    assert host.redeem(back(answer)["code"]).status_code == 200


@pytest.mark.parametrize(
    "query", ["client_id=%zz", "%", "client_id=a&client_id=b", "=%ff&&;", "a=" + "b" * 5000]
)
def test_a_damaged_address_is_refused(host: Any, query: str) -> None:
    answer = host.browser.get("/oauth/authorize?" + query)

    assert answer.status_code == 400


def test_an_issuer_in_the_registered_redirect_is_replaced(host: Any, settings: Any) -> None:
    host.redirect_uri = "https://host.example/cb?iss=https%3A%2F%2Fevil.example&keep=1"
    host.register()

    query = urlsplit(host.decide()["Location"]).query

    assert "evil.example" not in query
    assert "keep=1" in query
    assert query.count("iss=") == 1


@pytest.mark.parametrize(
    ("redirect", "allowed"),
    [
        ("http://127.0.0.1:33418/callback", "http://127.0.0.1:33418"),
        ("https://host.example/cb", "https://host.example"),
        ("http://[::1]:9000/cb", "http:"),
    ],
)
def test_the_policy_lets_the_form_go_to_us_and_back_to_the_host_only(
    host: Any, redirect: str, allowed: str
) -> None:
    host.redirect_uri = redirect
    host.register()

    page = host.page()

    policy = dict(part.strip().split(" ", 1) for part in page["Content-Security-Policy"].split(";"))
    assert policy["form-action"] == f"'self' {allowed}"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["default-src"] == "'none'"
    assert page["X-Frame-Options"] == "DENY"
    assert "no-store" in page["Cache-Control"]


def test_the_least_scope_is_always_granted(host: Any) -> None:
    assert set(host.sign_in(scope="files:delete")["scope"].split()) == {"confirm:read", "files:delete"}


def test_no_scope_asked_for_means_the_least(host: Any) -> None:
    assert host.sign_in(scope=None)["scope"] == "confirm:read"


def test_a_client_made_by_an_operator_may_ask_for_administration(host: Any) -> None:
    Client.objects.update(registration_source=Client.RegistrationSource.MANUAL)

    assert "confirm:admin" in host.sign_in(scope="confirm:read confirm:admin")["scope"]


def test_a_blocked_client_gets_no_page(host: Any) -> None:
    Client.objects.update(blocked=True)

    assert host.page().status_code == 400


def test_a_person_who_was_deactivated_meanwhile_cannot_allow(host: Any) -> None:
    host.user.is_active = False
    host.user.save()

    assert host.decide().status_code == 302
    assert not Code.objects.exists()

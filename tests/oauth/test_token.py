"""Codes and tokens: issued to the right one, once, for one resource, and gone when they should be."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from confirmhub.oauth import bearer
from confirmhub.oauth.models import AccessToken, Client, Code, RefreshToken
from confirmhub.oauth.tokens import digest
from tests.oauth import lookup


def test_a_host_gets_tokens_that_name_who_is_calling(host: Any) -> None:
    tokens = host.sign_in()

    found = lookup.find(token=tokens["access_token"])
    assert found is not None
    assert found.principal.client_id == host.client_id
    assert found.principal.subject == str(host.user.pk)
    assert found.scopes == {"confirm:read", "confirm:request", "confirm:redeem"}
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] == 3600
    assert set(tokens["scope"].split()) == found.scopes


def test_nothing_that_opens_a_door_is_stored_in_clear(host: Any) -> None:
    code = host.code()
    tokens = host.redeem(code).json()

    assert Code.objects.get().code == digest(code)
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(a)::text FROM oauth_accesstoken a")
        access = cursor.fetchone()[0]
        cursor.execute("SELECT row_to_json(r)::text FROM oauth_refreshtoken r")
        refresh = cursor.fetchone()[0]
    assert tokens["access_token"] not in access
    assert tokens["refresh_token"] not in refresh


def test_a_token_answer_is_never_cached(host: Any) -> None:
    good, bad = host.redeem(host.code()), host.redeem("no such code")

    assert good["Cache-Control"] == bad["Cache-Control"] == "no-store"


def test_a_code_is_redeemed_once_however_many_try_at_once(
    transactional_db: None, host: Any, at_once: Any
) -> None:
    code = host.code()

    answers = at_once(lambda: host.redeem(code))

    assert Counter(answer.status_code for answer in answers) == {200: 1, 400: len(answers) - 1}
    assert {answer.json()["error"] for answer in answers if answer.status_code == 400} == {"invalid_grant"}
    # The losers were replays by the holder, so what the winner got is revoked; nothing is left.
    assert AccessToken.objects.count() == 0
    assert RefreshToken.objects.filter(revoked__isnull=True).count() == 0


def test_a_race_of_those_without_the_verifier_leaves_the_winner_alone(
    transactional_db: None, host: Any, at_once: Any
) -> None:
    code = host.code()
    tokens = host.redeem(code).json()

    answers = at_once(lambda: host.redeem(code, code_verifier="w" * 50))

    assert {answer.status_code for answer in answers} == {400}
    assert lookup.find(token=tokens["access_token"]) is not None
    assert AccessToken.objects.count() == 1


def test_a_replay_by_the_holder_revokes_what_the_code_led_to(host: Any) -> None:
    code = host.code()
    tokens = host.redeem(code).json()
    later = host.refresh(tokens["refresh_token"]).json()

    replay = host.redeem(code)

    assert (replay.status_code, replay.json()["error"]) == (400, "invalid_grant")
    assert lookup.find(token=later["access_token"]) is None
    assert host.refresh(later["refresh_token"]).status_code == 400


@pytest.mark.parametrize(
    "change",
    [
        {"code_verifier": None},
        {"code_verifier": "another-verifier-that-is-long-enough-to-be-one"},
        {"redirect_uri": "http://127.0.0.1:33418/other"},
        {"redirect_uri": "http://127.0.0.1:1/callback"},
        {"client_id": "nobody"},
        {"client_id": "nul\0byte"},
    ],
)
def test_a_redemption_that_does_not_match_the_request_is_refused(host: Any, change: dict[str, Any]) -> None:
    answer = host.redeem(host.code(), **change)

    assert answer.status_code in (400, 401)
    assert AccessToken.objects.count() == 0


def test_an_expired_code_is_refused(host: Any) -> None:
    code = host.code()
    Code.objects.update(expires=timezone.now() - timedelta(seconds=1))

    assert host.redeem(code).json()["error"] == "invalid_grant"


def test_another_client_cannot_redeem_the_code(new_host: Any) -> None:
    victim, thief = new_host(), new_host()

    answer = victim.redeem(victim.code(), client_id=thief.client_id)

    assert answer.json()["error"] == "invalid_grant"


def test_the_database_refuses_a_token_without_a_person_or_without_one_audience(
    host: Any, settings: Any
) -> None:
    client = Client.objects.get()
    common = {"token": "", "application": client, "expires": timezone.now(), "scope": "confirm:read"}

    with (
        pytest.raises(IntegrityError, match="access_token_has_a_person_or_is_a_services"),
        transaction.atomic(),
    ):
        AccessToken.objects.create(token_checksum="a", resource=[settings.MCP_RESOURCE], **common)
    for resource in ([], [settings.MCP_RESOURCE, "https://other.example/mcp"]):
        with pytest.raises(IntegrityError, match="access_token_has_one_resource"), transaction.atomic():
            AccessToken.objects.create(token_checksum="b", resource=resource, user=host.user, **common)


def test_the_token_is_for_our_resource_even_if_the_host_asks_for_none(host: Any, settings: Any) -> None:
    tokens = host.redeem(host.code(resource=None), resource=None).json()

    assert AccessToken.objects.get().resource == [settings.MCP_RESOURCE]
    assert RefreshToken.objects.get().resource == [settings.MCP_RESOURCE]
    assert lookup.find(token=tokens["access_token"]) is not None


@pytest.mark.parametrize("foreign", ["https://evil.example/mcp", "", "urn:x", ["https://evil.example/mcp"]])
def test_a_foreign_resource_at_the_token_endpoint_leaves_the_code_usable(host: Any, foreign: Any) -> None:
    code = host.code()
    asked = [host.resource, foreign] if isinstance(foreign, list) else foreign

    refused = host.redeem(code, resource=asked)

    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target")
    assert AccessToken.objects.count() == 0
    assert host.redeem(code).status_code == 200


def test_a_deactivated_person_is_out_at_once(host: Any) -> None:
    code, tokens = host.code(), host.sign_in()
    host.user.is_active = False
    host.user.save()

    assert lookup.find(token=tokens["access_token"]) is None
    assert host.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert host.redeem(code).json()["error"] == "invalid_grant"


def test_a_blocked_client_is_out_at_once(host: Any) -> None:
    code, tokens = host.code(), host.sign_in()
    Client.objects.update(blocked=True)

    assert lookup.find(token=tokens["access_token"]) is None
    assert host.refresh(tokens["refresh_token"]).status_code == 401
    assert host.redeem(code).status_code == 401


def test_a_revoked_token_is_out_at_once(host: Any) -> None:
    tokens = host.sign_in()

    answer = host.browser.post(
        "/oauth/revoke", {"client_id": host.client_id, "token": tokens["access_token"]}
    )

    assert answer.status_code == 200
    assert lookup.find(token=tokens["access_token"]) is None
    assert host.refresh(tokens["refresh_token"]).status_code == 400


@pytest.mark.parametrize("token", ["", "x", "y" * 300, "\0", "\ud800", "chat_ü"])
def test_what_is_no_token_of_ours_finds_nobody(host: Any, token: str) -> None:
    assert lookup.find(token=token) is None


def test_a_token_for_another_audience_or_past_its_time_finds_nobody(host: Any) -> None:
    token = host.sign_in()["access_token"]

    AccessToken.objects.update(resource=["http://localhost:8000/other"])
    assert lookup.find(token=token) is None

    AccessToken.objects.update(resource=[host.resource])
    assert lookup.find(token=token) is not None

    AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert lookup.find(token=token) is None


def test_a_bearer_is_found_with_one_query(host: Any, django_assert_num_queries: Any) -> None:
    token = host.sign_in()["access_token"]
    bearer.find_for_api(token=token)  # the first use is noted

    with django_assert_num_queries(1):
        bearer.find_for_api(token=token)


def test_parameters_in_the_url_are_refused(host: Any) -> None:
    for path in ("/oauth/token?grant_type=refresh_token", "/oauth/revoke?token=x"):
        assert host.browser.post(path, {}).json()["error"] == "invalid_request"


@pytest.mark.parametrize(
    "grant",
    [
        {"grant_type": "password", "username": "ada", "password": "correct horse battery"},
        {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "x"},
        {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "x"},
        {},
    ],
)
def test_no_other_grant_leads_to_tokens(host: Any, grant: dict[str, str]) -> None:
    answer = host.token(**grant)

    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type")

"""Codes and tokens: issued to the right one, once, for one resource, and gone when they should be."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from confirmhub.oauth import bearer, stepup
from confirmhub.oauth.models import AccessToken, Client, Code, RefreshToken
from confirmhub.oauth.tokens import digest

PARALLEL = 20


def at_once(call: Callable[[], Any], *, times: int = PARALLEL) -> list[Any]:
    """What `times` calls return that start together, each on a connection of its own."""
    barrier = threading.Barrier(times)

    def one(_: int) -> Any:
        try:
            barrier.wait()
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(one, range(times)))


def test_a_host_gets_tokens_that_name_who_is_calling(host: Any) -> None:
    tokens = host.sign_in()

    found = bearer.find(token=tokens["access_token"])
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


def test_a_code_is_redeemed_once_however_many_try_at_once(transactional_db: None, host: Any) -> None:
    code = host.code()

    answers = at_once(lambda: host.redeem(code))

    assert Counter(answer.status_code for answer in answers) == {200: 1, 400: PARALLEL - 1}
    assert {answer.json()["error"] for answer in answers if answer.status_code == 400} == {"invalid_grant"}
    # The losers were replays by the holder, so what the winner got is revoked; nothing is left.
    assert AccessToken.objects.count() == 0
    assert RefreshToken.objects.filter(revoked__isnull=True).count() == 0


def test_a_race_of_those_without_the_verifier_leaves_the_winner_alone(
    transactional_db: None, host: Any
) -> None:
    code = host.code()
    tokens = host.redeem(code).json()

    answers = at_once(lambda: host.redeem(code, code_verifier="w" * 50))

    assert {answer.status_code for answer in answers} == {400}
    assert bearer.find(token=tokens["access_token"]) is not None
    assert AccessToken.objects.count() == 1


def test_a_replay_by_the_holder_revokes_what_the_code_led_to(host: Any) -> None:
    code = host.code()
    tokens = host.redeem(code).json()
    later = host.refresh(tokens["refresh_token"]).json()

    replay = host.redeem(code)

    assert (replay.status_code, replay.json()["error"]) == (400, "invalid_grant")
    assert bearer.find(token=later["access_token"]) is None
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


@pytest.mark.parametrize(
    "grant",
    [
        {"grant_type": "client_credentials", "scope": "confirm:admin"},
        {"grant_type": "password", "username": "ada", "password": "correct horse battery"},
        {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "x"},
        {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "x"},
        {},
    ],
)
def test_only_codes_and_refresh_tokens_lead_to_tokens(host: Any, grant: dict[str, str]) -> None:
    answer = host.token(**grant)

    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type")


def test_the_database_refuses_a_token_without_a_person_or_without_one_audience(
    host: Any, settings: Any
) -> None:
    client = Client.objects.get()
    common = {"token": "", "application": client, "expires": timezone.now(), "scope": "confirm:read"}

    with pytest.raises(IntegrityError, match="access_token_has_a_person"), transaction.atomic():
        AccessToken.objects.create(token_checksum="a", resource=[settings.MCP_RESOURCE], **common)
    for resource in ([], [settings.MCP_RESOURCE, "https://other.example/mcp"]):
        with pytest.raises(IntegrityError, match="access_token_has_one_resource"), transaction.atomic():
            AccessToken.objects.create(token_checksum="b", resource=resource, user=host.user, **common)


def test_the_token_is_for_our_resource_even_if_the_host_asks_for_none(host: Any, settings: Any) -> None:
    tokens = host.redeem(host.code(resource=None), resource=None).json()

    assert AccessToken.objects.get().resource == [settings.MCP_RESOURCE]
    assert RefreshToken.objects.get().resource == [settings.MCP_RESOURCE]
    assert bearer.find(token=tokens["access_token"]) is not None


@pytest.mark.parametrize("foreign", ["https://evil.example/mcp", "", "urn:x", ["https://evil.example/mcp"]])
def test_a_foreign_resource_at_the_token_endpoint_leaves_the_code_usable(host: Any, foreign: Any) -> None:
    code = host.code()
    asked = [host.resource, foreign] if isinstance(foreign, list) else foreign

    refused = host.redeem(code, resource=asked)

    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target")
    assert AccessToken.objects.count() == 0
    assert host.redeem(code).status_code == 200


def test_a_refresh_for_a_foreign_resource_is_refused_and_spends_nothing(host: Any) -> None:
    tokens = host.sign_in()

    refused = host.refresh(tokens["refresh_token"], resource="https://evil.example/mcp")

    assert refused.json()["error"] == "invalid_target"
    assert host.refresh(tokens["refresh_token"]).status_code == 200


def test_a_refresh_rotates_both_tokens(host: Any) -> None:
    first = host.sign_in()

    second = host.refresh(first["refresh_token"]).json()

    assert second["access_token"] != first["access_token"]
    assert second["refresh_token"] != first["refresh_token"]
    assert bearer.find(token=first["access_token"]) is None
    assert bearer.find(token=second["access_token"]) is not None


def test_parallel_refreshes_all_get_the_same_one_pair(transactional_db: None, host: Any) -> None:
    token = host.sign_in()["refresh_token"]

    answers = at_once(lambda: host.refresh(token))

    assert {answer.status_code for answer in answers} == {200}
    assert len({(a.json()["access_token"], a.json()["refresh_token"]) for a in answers}) == 1
    assert AccessToken.objects.count() == 1
    assert RefreshToken.objects.filter(revoked__isnull=True).count() == 1
    assert bearer.find(token=answers[0].json()["access_token"]) is not None


def test_a_refresh_sent_again_within_the_grace_gets_the_same_answer(host: Any) -> None:
    token = host.sign_in()["refresh_token"]
    first = host.refresh(token).json()

    again = host.refresh(token).json()

    assert again["access_token"] == first["access_token"]
    assert again["refresh_token"] == first["refresh_token"]
    assert again["expires_in"] <= first["expires_in"]
    assert again["scope"] == first["scope"]


def test_a_refresh_sent_again_after_the_grace_ends_the_session(host: Any) -> None:
    token = host.sign_in()["refresh_token"]
    successor = host.refresh(token).json()
    RefreshToken.objects.filter(revoked__isnull=False).update(revoked=timezone.now() - timedelta(seconds=31))

    reuse = host.refresh(token)

    assert reuse.json()["error"] == "invalid_grant"
    assert bearer.find(token=successor["access_token"]) is None
    assert host.refresh(successor["refresh_token"]).status_code == 400


def test_a_token_two_generations_old_ends_the_session_even_within_the_grace(host: Any) -> None:
    first = host.sign_in()["refresh_token"]
    second = host.refresh(first).json()["refresh_token"]
    third = host.refresh(second, scope="confirm:read").json()

    assert host.refresh(first).json()["error"] == "invalid_grant"
    assert bearer.find(token=third["access_token"]) is None


def test_a_new_pair_is_not_rotated_again_under_the_requests_that_wait_for_it(host: Any) -> None:
    old = host.sign_in()["refresh_token"]
    new = host.refresh(old).json()

    answers = [host.refresh(token).json() for token in (new["refresh_token"], old, new["refresh_token"])]

    assert {answer["access_token"] for answer in answers} == {new["access_token"]}
    assert {answer["refresh_token"] for answer in answers} == {new["refresh_token"]}
    assert bearer.find(token=new["access_token"]) is not None


def test_a_pair_older_than_the_grace_is_rotated(host: Any) -> None:
    new = host.refresh(host.sign_in()["refresh_token"]).json()
    AccessToken.objects.update(created=timezone.now() - timedelta(seconds=31))

    newer = host.refresh(new["refresh_token"]).json()

    assert newer["refresh_token"] != new["refresh_token"]
    assert bearer.find(token=new["access_token"]) is None


def test_the_grace_is_no_way_round_a_revocation(host: Any) -> None:
    token = host.sign_in()["refresh_token"]
    RefreshToken.objects.get().revoke()

    assert host.refresh(token).json()["error"] == "invalid_grant"


def test_another_client_cannot_refresh(new_host: Any) -> None:
    victim, thief = new_host(), new_host()
    token = victim.sign_in()["refresh_token"]

    assert thief.refresh(token).json()["error"] == "invalid_grant"
    assert victim.refresh(token).status_code == 200


def test_a_refresh_token_dies_thirty_days_after_its_last_use(host: Any) -> None:
    token = host.sign_in()["refresh_token"]
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=30, seconds=1))

    assert host.refresh(token).json()["error"] == "invalid_grant"


def test_a_refresh_for_less_scope_does_not_shrink_the_grant(host: Any) -> None:
    token = host.sign_in()["refresh_token"]

    narrow = host.refresh(token, scope="confirm:read").json()
    AccessToken.objects.update(created=timezone.now() - timedelta(seconds=31))
    wide = host.refresh(narrow["refresh_token"]).json()

    assert narrow["scope"] == "confirm:read"
    assert set(wide["scope"].split()) == {"confirm:read", "confirm:request", "confirm:redeem"}


def test_a_refresh_for_more_scope_is_refused(host: Any) -> None:
    token = host.sign_in(scope="confirm:read")["refresh_token"]

    assert host.refresh(token, scope="confirm:read files:delete").json()["error"] == "invalid_scope"


def test_a_deactivated_person_is_out_at_once(host: Any) -> None:
    code, tokens = host.code(), host.sign_in()
    host.user.is_active = False
    host.user.save()

    assert bearer.find(token=tokens["access_token"]) is None
    assert host.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert host.redeem(code).json()["error"] == "invalid_grant"


def test_a_blocked_client_is_out_at_once(host: Any) -> None:
    code, tokens = host.code(), host.sign_in()
    Client.objects.update(blocked=True)

    assert bearer.find(token=tokens["access_token"]) is None
    assert host.refresh(tokens["refresh_token"]).status_code == 401
    assert host.redeem(code).status_code == 401


def test_a_revoked_token_is_out_at_once(host: Any) -> None:
    tokens = host.sign_in()

    answer = host.browser.post(
        "/oauth/revoke", {"client_id": host.client_id, "token": tokens["access_token"]}
    )

    assert answer.status_code == 200
    assert bearer.find(token=tokens["access_token"]) is None
    assert host.refresh(tokens["refresh_token"]).status_code == 400


@pytest.mark.parametrize("token", ["", "x", "y" * 300, "\0", "\ud800", "chat_ü"])
def test_what_is_no_token_of_ours_finds_nobody(host: Any, token: str) -> None:
    assert bearer.find(token=token) is None


def test_a_token_for_another_audience_or_past_its_time_finds_nobody(host: Any) -> None:
    token = host.sign_in()["access_token"]

    AccessToken.objects.update(resource=["http://localhost:8000/other"])
    assert bearer.find(token=token) is None

    AccessToken.objects.update(resource=[host.resource])
    assert bearer.find(token=token) is not None

    AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert bearer.find(token=token) is None


def test_a_bearer_is_found_with_one_query(host: Any, django_assert_num_queries: Any) -> None:
    token = host.sign_in()["access_token"]

    with django_assert_num_queries(1):
        bearer.find(token=token)


def test_parameters_in_the_url_are_refused(host: Any) -> None:
    for path in ("/oauth/token?grant_type=refresh_token", "/oauth/revoke?token=x"):
        assert host.browser.post(path, {}).json()["error"] == "invalid_request"


def test_a_challenged_grant_is_sent_to_the_browser_and_keeps_its_tokens(host: Any) -> None:
    tokens = host.sign_in(scope="confirm:read")
    stepup.mark(token=tokens["access_token"], needed=["confirm:read", "files:delete"])

    refused = host.refresh(tokens["refresh_token"])

    assert (refused.status_code, refused.json()["error"]) == (400, "interaction_required")
    assert bearer.find(token=tokens["access_token"]) is not None
    wider = host.sign_in(scope="confirm:read files:delete")
    assert host.refresh(wider["refresh_token"]).status_code == 200


def test_a_challenge_does_not_stop_an_ordinary_refresh(host: Any) -> None:
    tokens = host.sign_in(scope="confirm:read")
    stepup.mark(token=tokens["access_token"], needed=["files:delete"])
    now = timezone.now()
    AccessToken.objects.update(created=now - timedelta(hours=1), expires=now + timedelta(minutes=1))

    assert host.refresh(tokens["refresh_token"]).status_code == 200


def test_a_challenge_is_forgotten_after_a_minute(host: Any) -> None:
    tokens = host.sign_in(scope="confirm:read")
    stepup.mark(token=tokens["access_token"], needed=["files:delete"])
    RefreshToken.objects.update(stepup_at=timezone.now() - stepup.MARK_LASTS)

    assert host.refresh(tokens["refresh_token"]).status_code == 200


@pytest.mark.parametrize(("answer", "status"), [("invalid_grant", 400), ("off", 200)])
def test_the_answer_to_a_challenged_grant_is_a_setting(
    host: Any, settings: Any, answer: str, status: int
) -> None:
    settings.STEP_UP_ANSWER = answer
    tokens = host.sign_in(scope="confirm:read")
    stepup.mark(token=tokens["access_token"], needed=["files:delete"])

    refused = host.refresh(tokens["refresh_token"])

    assert refused.status_code == status
    if status == 400:
        assert refused.json()["error"] == answer


def test_the_challenge_names_what_is_held_and_what_is_needed() -> None:
    scope = stepup.challenge_scope(held={"confirm:request", "confirm:read"}, needed=["files:delete"])

    assert scope == "confirm:read confirm:request files:delete"

"""Refresh: one pair however many ask at once, an end for stolen tokens, a way to more scope."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from confirmhub.oauth import stepup
from confirmhub.oauth.models import AccessToken, RefreshToken
from tests.oauth import lookup


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
    assert lookup.find(token=first["access_token"]) is None
    assert lookup.find(token=second["access_token"]) is not None


def test_parallel_refreshes_all_get_the_same_one_pair(
    transactional_db: None, host: Any, at_once: Any
) -> None:
    token = host.sign_in()["refresh_token"]

    answers = at_once(lambda: host.refresh(token))

    assert {answer.status_code for answer in answers} == {200}
    assert len({(a.json()["access_token"], a.json()["refresh_token"]) for a in answers}) == 1
    assert AccessToken.objects.count() == 1
    assert RefreshToken.objects.filter(revoked__isnull=True).count() == 1
    assert lookup.find(token=answers[0].json()["access_token"]) is not None


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
    assert lookup.find(token=successor["access_token"]) is None
    assert host.refresh(successor["refresh_token"]).status_code == 400


def test_a_token_two_generations_old_ends_the_session_even_within_the_grace(host: Any) -> None:
    first = host.sign_in()["refresh_token"]
    second = host.refresh(first).json()["refresh_token"]
    third = host.refresh(second, scope="confirm:read").json()

    assert host.refresh(first).json()["error"] == "invalid_grant"
    assert lookup.find(token=third["access_token"]) is None


def test_a_new_pair_is_not_rotated_again_under_the_requests_that_wait_for_it(host: Any) -> None:
    old = host.sign_in()["refresh_token"]
    new = host.refresh(old).json()

    answers = [host.refresh(token).json() for token in (new["refresh_token"], old, new["refresh_token"])]

    assert {answer["access_token"] for answer in answers} == {new["access_token"]}
    assert {answer["refresh_token"] for answer in answers} == {new["refresh_token"]}
    assert lookup.find(token=new["access_token"]) is not None


def test_a_pair_older_than_the_grace_is_rotated(host: Any) -> None:
    new = host.refresh(host.sign_in()["refresh_token"]).json()
    AccessToken.objects.update(created=timezone.now() - timedelta(seconds=31))

    newer = host.refresh(new["refresh_token"]).json()

    assert newer["refresh_token"] != new["refresh_token"]
    assert lookup.find(token=new["access_token"]) is None


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


def test_a_challenged_grant_is_sent_to_the_browser_and_keeps_its_tokens(host: Any) -> None:
    tokens = host.sign_in(scope="confirm:read")
    stepup.mark(token=tokens["access_token"], needed=["confirm:read", "files:delete"])

    refused = host.refresh(tokens["refresh_token"])

    assert (refused.status_code, refused.json()["error"]) == (400, "interaction_required")
    assert lookup.find(token=tokens["access_token"]) is not None
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

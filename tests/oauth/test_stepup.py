"""After a step-up: the grant that was too narrow ends, and nothing that is under way falls with it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from confirmhub.oauth import stepup
from confirmhub.oauth.models import AccessToken, Code, RefreshToken
from tests.oauth import lookup

NARROW, WIDE = "confirm:read confirm:request", "confirm:read confirm:request files:delete"


def challenged(host: Any, **changes: Any) -> dict[str, Any]:
    """Tokens that were good for something, and then not for what was asked of them."""
    tokens: dict[str, Any] = host.sign_in(scope=NARROW, **changes)
    stepup.mark(token=tokens["access_token"], needed=["files:delete"])
    return tokens


def later(seconds: float) -> None:
    """As if that much time had passed for the tokens that were issued."""
    passed = timedelta(seconds=seconds)
    for row in AccessToken.objects.all():
        row.expires -= passed
        row.save(update_fields=["expires"])


def is_good(host: Any, tokens: dict[str, Any]) -> bool:
    return lookup.find(token=tokens["access_token"]) is not None


def test_the_grant_that_was_challenged_ends_once_the_wider_one_is_there(host: Any) -> None:
    old = challenged(host)

    new = host.sign_in(scope=WIDE)

    assert host.refresh(old["refresh_token"]).json()["error"] == "invalid_grant"
    assert is_good(host, new)
    later(stepup.FADES_IN.total_seconds())
    assert not is_good(host, old)
    assert is_good(host, new)


def test_calls_that_are_under_way_with_the_old_token_come_to_their_end(host: Any) -> None:
    old = challenged(host)

    host.sign_in(scope=WIDE)

    assert is_good(host, old)
    assert AccessToken.objects.count() == 2


def test_the_old_token_never_lives_longer_for_it(host: Any) -> None:
    old = challenged(host)
    soon = timezone.now() + timedelta(seconds=5)
    AccessToken.objects.update(expires=soon)

    host.sign_in(scope=WIDE)

    assert AccessToken.objects.order_by("pk").first().expires == soon
    assert is_good(host, old)


def test_another_session_of_the_same_program_stays(host: Any) -> None:
    desk, phone = challenged(host), host.sign_in(scope=NARROW)

    host.sign_in(scope=WIDE)

    assert host.refresh(desk["refresh_token"]).status_code == 400
    assert host.refresh(phone["refresh_token"]).status_code == 200


def test_of_two_challenged_sessions_none_is_ended_by_guess(host: Any) -> None:
    sessions = challenged(host), challenged(host)
    RefreshToken.objects.update(stepup_at=timezone.now() - stepup.MARK_LASTS)  # so that a refresh is answered

    host.sign_in(scope=WIDE)

    assert [host.refresh(each["refresh_token"]).status_code for each in sessions] == [200, 200]


@pytest.mark.parametrize("scope", ["confirm:read files:delete", NARROW, "confirm:read"])
def test_a_grant_that_does_not_cover_it_all_ends_nothing(host: Any, scope: str) -> None:
    old = challenged(host)
    RefreshToken.objects.update(stepup_at=timezone.now() - stepup.MARK_LASTS)

    host.sign_in(scope=scope)

    assert host.refresh(old["refresh_token"]).status_code == 200


def test_a_challenge_of_long_ago_ends_nothing(host: Any) -> None:
    old = challenged(host)
    RefreshToken.objects.update(stepup_at=timezone.now() - stepup.CONSENT_TAKES)

    host.sign_in(scope=WIDE)

    assert host.refresh(old["refresh_token"]).status_code == 200


def test_another_program_and_another_person_are_no_part_of_it(new_host: Any) -> None:
    mine, other = new_host(), new_host()
    theirs = challenged(other)
    RefreshToken.objects.update(stepup_at=timezone.now() - stepup.MARK_LASTS)

    mine.sign_in(scope=WIDE)

    assert other.refresh(theirs["refresh_token"]).status_code == 200


def test_a_consent_that_is_not_redeemed_ends_nothing(host: Any) -> None:
    old = challenged(host)

    host.code(scope=WIDE)

    assert is_good(host, old)
    assert RefreshToken.objects.filter(revoked__isnull=True).count() == 1


def test_a_replay_of_the_first_code_ends_what_is_left_of_the_old_grant_alone(host: Any) -> None:
    code = host.code(scope=NARROW)
    old = host.redeem(code).json()
    stepup.mark(token=old["access_token"], needed=["files:delete"])
    new = host.sign_in(scope=WIDE)

    assert host.redeem(code).status_code == 400

    assert not is_good(host, old)
    assert is_good(host, new)


def test_many_calls_and_refreshes_during_the_step_up_leave_one_wide_grant(
    transactional_db: None, host: Any, at_once: Any
) -> None:
    old = challenged(host)
    code = host.code(scope=WIDE)
    jobs = iter(["redeem", *["call"] * 9, *["refresh"] * 10])
    answers: dict[str, list[Any]] = {"redeem": [], "call": [], "refresh": []}

    def one() -> None:
        job = next(jobs)
        done = {
            "redeem": lambda: host.redeem(code),
            "call": lambda: lookup.find(token=old["access_token"]),
            "refresh": lambda: host.refresh(old["refresh_token"]),
        }[job]()
        answers[job].append(done)

    at_once(one)

    (redeemed,) = answers["redeem"]
    assert redeemed.status_code == 200
    assert all(answers["call"])  # none fell
    # By whether they came before or after: sent to the browser, or done with. None got a pair.
    said = {answer.json()["error"] for answer in answers["refresh"]}
    assert said <= {"interaction_required", "invalid_grant"}
    (left,) = RefreshToken.objects.filter(revoked__isnull=True)
    assert left.grant_scope == WIDE
    assert Code.objects.filter(redeemed_at__isnull=False).count() == 2

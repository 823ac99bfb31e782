"""The quick routes let in exactly whom all other routes let in, whatever became of the token."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from confirmhub.api.hot import APPLICATION
from confirmhub.confirmations import lookups
from confirmhub.oauth.models import AccessToken, Client
from tests.api.serving import Caller, make_service, refusal
from tests.bridge.hosts import make_token

CHANGES: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "revoked": lambda: AccessToken.objects.all().delete(),
    "expired": lambda: AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1)),
    "blocked": lambda: Client.objects.update(blocked=True),
    "of another resource": lambda: AccessToken.objects.update(resource=["https://other.example/mcp"]),
    "without the least scope": lambda: AccessToken.objects.update(scope="confirm:request"),
    "of somebody who has left": lambda: User.objects.update(is_active=False),
    "of a service with another audience": lambda: Client.objects.filter(audience__gt="").update(
        audience="https://other.example/api"
    ),
    "of a service that may less": lambda: Client.objects.filter(audience__gt="").update(
        service_scope="confirm:read"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_both_ways_to_look_a_token_up_agree(url: str, program: Caller, change: str) -> None:
    id_ = program.ask().json()["id"]
    service = make_service(url)
    CHANGES[change]()

    for caller in (program, service):
        slow, quick = caller.get(f"confirmations/{id_}"), caller.get(f"confirmations/{id_}/wait?timeout=0")
        assert quick.status_code == slow.status_code, change
        nothing = "00000000-0000-4000-8000-000000000000"
        slow = caller.post(f"confirmations/{nothing}/outcome", {"redemption_key": "k", "result": "failed"})
        quick = caller.redeem(nothing)
        assert quick.status_code == slow.status_code, change


@pytest.mark.parametrize("token", ["x" * 201, "é".encode(), b"\xff", "a b"])
def test_what_can_be_no_token_is_none(program: Caller, token: str | bytes) -> None:
    id_ = program.ask().json()["id"]
    given = b"Bearer " + (token if isinstance(token, bytes) else token.encode())

    for path in (f"confirmations/{id_}", f"confirmations/{id_}/wait?timeout=0"):
        assert Caller(program.url, None, {"Authorization": given}).get(path).status_code == 401


def test_a_connection_that_was_lost_is_made_anew(program: Caller) -> None:
    path = f"confirmations/{program.ask().json()['id']}/wait?timeout=0"
    assert program.get(path).status_code == 200
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name = %s AND datname = current_database()",
            [APPLICATION],
        )
        assert cursor.fetchone() == (1,)

    assert program.get(path).status_code == 200


def test_a_look_up_that_takes_too_long_is_not_made_again(
    program: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"confirmations/{program.ask().json()['id']}/wait?timeout=0"
    assert program.get(path).status_code == 200
    ran = []

    async def too_long(*_: object) -> None:
        ran.append(1)
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    monkeypatch.setattr(lookups.Reader, "_run", too_long)

    assert refusal(program.get(path)) == (503, "unavailable")
    assert ran == [1]


def test_the_use_of_a_token_is_written_down(url: str, program: Caller, alice: User) -> None:
    path = f"confirmations/{program.ask().json()['id']}/wait?timeout=0"
    quick = Caller(url, make_token(alice, resource=f"{url}/mcp"))
    assert AccessToken.objects.filter(used_at=None).count() == 1

    quick.get(path)

    assert not AccessToken.objects.filter(used_at=None).exists()

"""What no browser sends ends in a refusal, never in a failure of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from confirmhub.confirmations import ledger
from confirmhub.confirmations.dsn import conninfo
from confirmhub.confirmations.errors import Busy
from confirmhub.confirmations.models import Confirmation
from tests.factories import PASSWORD

WAYS_TO_SEND = ["GET", "POST", "multipart"]


@pytest.fixture
def nobody(db: None) -> Client:
    return Client(headers={"host": "localhost"}, raise_request_exception=False)


@pytest.fixture
def operator(db: None) -> Client:
    client = Client(headers={"host": "localhost"}, raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root", password=PASSWORD))
    return client


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", "/history", "/admin/", "/oauth/authorize", "/account/hosts"]
)
def test_a_cookie_with_a_nul_is_nobodys(nobody: Client, path: str) -> None:
    answer = nobody.get(path, headers={"cookie": r'session="aaaaaaaaaaaa\000"'})

    assert answer.status_code == nobody.get(path).status_code


@pytest.mark.parametrize(
    "path",
    [
        "/sign-in", "/history", "/confirm/x", "/admin/confirmations/confirmation/", "/admin/auth/user/add/",
        "/oauth/token", "/oauth/revoke", "/oauth/register", "/oauth/authorize", "/deny-all", "/account/hosts",
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["name", "value"])
@pytest.mark.parametrize("way", WAYS_TO_SEND)
def test_a_nul_is_refused_wherever_it_is_sent(operator: Client, path: str, where: str, way: str) -> None:
    name, value = ("q\0", "x") if where == "name" else ("q", "x\0")
    query = f"{name}={value}".replace("\0", "%00")
    match way:
        case "GET":
            answer = operator.get(f"{path}?{query}")
        case "POST":
            answer = operator.post(path, query, content_type="application/x-www-form-urlencoded")
        case _:
            answer = operator.post(path, {name: value})

    assert answer.status_code == 400


def test_a_nul_in_a_path_is_refused(nobody: Client) -> None:
    assert nobody.get("/confirm/%00").status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/admin/confirmations/confirmation/?requested_at__year=99999",
        "/admin/confirmations/confirmation/?requested_at__year=0",
        "/admin/confirmations/confirmation/?requested_at__year=x",
        "/admin/confirmations/confirmation/?requested_at__gte=0000-00-00",
        "/admin/oauth/accesstoken/?expires__year=0",
        "/admin/oauth/accesstoken/?expires__year=99999",
        "/admin/oauth/accesstoken/?id__exact=99999999999999999999",
        "/admin/auth/user/?id__in=x",
        "/admin/auth/user/99999999999999999999/change/",
        "/admin/auth/user/?p=99999999999999999999",
    ],
)
def test_a_value_that_a_column_cannot_hold_is_no_failure_of_ours(operator: Client, path: str) -> None:
    assert operator.get(path).status_code in (200, 302, 400, 404)


@pytest.mark.parametrize("row", ["x", "99999999999999999999", "-1", "1.5"])
@pytest.mark.parametrize("path", ["auth/user", "confirmations/rule", "oauth/client"])
def test_an_action_on_no_row_is_no_failure_of_ours(operator: Client, path: str, row: str) -> None:
    fields = {"action": "delete_selected", "_selected_action": row}

    assert operator.post(f"/admin/{path}/", fields).status_code in (200, 302, 400, 404)


def test_a_bug_of_the_admins_is_still_one(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.contrib.auth.admin import UserAdmin

    def broken(*_: object) -> None:
        raise TypeError

    monkeypatch.setattr(UserAdmin, "get_queryset", broken)

    assert operator.get("/admin/auth/user/").status_code == 500


@pytest.mark.parametrize("field", ["username", "password"])
def test_a_name_or_password_longer_than_any_is_refused_unrecorded(nobody: Client, field: str) -> None:
    fields = {"username": "alice", "password": "wrong", field: "a" * 5000}

    answer = nobody.post("/sign-in", fields, headers={"user-agent": "u" * 5000, "accept": "a" * 5000})

    assert answer.status_code == 200
    assert "do not match" in answer.content.decode()


def test_long_headers_are_no_failure_of_a_sign_in(nobody: Client) -> None:
    headers = {"user-agent": "u" * 5000, "accept": "a" * 5000}

    answer = nobody.post("/sign-in?" + "q" * 5000, {"username": "x", "password": "y"}, headers=headers)

    assert answer.status_code == 200


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Hold a table as a long transaction would."""
    with psycopg.connect(conninfo()) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("table", "path", "fields"),
    [
        ("django_session", "/", {}),
        ("auth_user", "/sign-in", {"username": "alice", "password": PASSWORD}),
        ("oauth_accesstoken", "/oauth/revoke", {"token": "x", "client_id": "c"}),
        ("oauth_tally", "/oauth/revoke", {"token": "x", "client_id": "c"}),
        (
            "confirmations_confirmation",
            "/deny-all",
            {"shown": f"{'0' * 8}-0000-0000-0000-{'0' * 12}:{'0' * 64}"},
        ),
    ],
)
def test_a_wait_that_takes_too_long_ends_in_try_again(
    alice: User, table: str, path: str, fields: dict[str, str]
) -> None:
    client = Client(headers={"host": "localhost"}, raise_request_exception=False)
    client.force_login(alice)
    if path == "/oauth/revoke":
        from tests.oauth.conftest import Host

        host = Host(alice, settings.MCP_RESOURCE)
        host.register()
        fields = fields | {"client_id": host.client_id}
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    try:
        with locked(table):
            answer = client.post(path, fields) if fields else client.get(path)
    finally:
        connection.close()

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0


def test_denying_all_stops_where_others_are_at_work(
    browser: Client, pending: Confirmation, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[None] = []

    def busy(**_: object) -> None:
        calls.append(None)
        raise Busy(retry_after=1)

    monkeypatch.setattr(ledger, "decide", busy)
    shown = f"{pending.id}:{bytes(pending.view_digest).hex()}"

    answer = browser.post("/deny-all", {"shown": f"{shown} {shown}"})

    assert (answer.status_code, len(calls)) == (503, 1)
    assert "Others are at work" in answer.content.decode()

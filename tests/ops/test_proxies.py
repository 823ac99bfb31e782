"""Whose word counts for the address of who asks: that of a proxy that was named, and nobody else's."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from pytest_django import Settings
from starlette.types import Receive, Scope, Send

from confirmhub.ops import web
from confirmhub.ops.proxies import Addressed
from tests.bridge.serving import served
from tests.ops.conftest import Log


def address_seen(*, peer: str, told: str) -> str:
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["client"][0])

    config = web.config(app)
    config.load()
    scope = {"type": "http", "client": (peer, 1), "headers": [(b"x-forwarded-for", told.encode())]}
    asyncio.run(config.loaded_app(scope, None, None))
    return seen[0]


@pytest.mark.parametrize(
    ("peer", "told", "address"),
    [
        ("10.1.2.3", "198.51.100.7", "198.51.100.7"),
        ("10.1.2.3", "192.0.2.1, 198.51.100.7", "198.51.100.7"),  # the first is the client's own word
        ("10.1.2.3", "192.0.2.1, 198.51.100.7, 10.1.9.9", "198.51.100.7"),
        ("198.51.100.8", "192.0.2.1", "198.51.100.8"),
    ],
)
def test_a_proxy_that_was_named_says_who_asks(settings: Settings, peer: str, told: str, address: str) -> None:
    settings.TRUSTED_PROXIES = ["10.1.0.0/16"]

    assert address_seen(peer=peer, told=told) == address


def test_where_no_proxy_was_named_nobody_does(settings: Settings) -> None:
    assert settings.TRUSTED_PROXIES == []
    assert address_seen(peer="127.0.0.1", told="192.0.2.1") == "127.0.0.1"


@pytest.mark.parametrize("told", ["unknown", "garbage" * 700, "198.51.100.7, _hidden"])
def test_what_is_no_address_is_refused_and_that_is_logged(
    settings: Settings, transactional_db: None, told: str, request: pytest.FixtureRequest
) -> None:
    settings.TRUSTED_PROXIES = ["127.0.0.1"]

    with served() as url:
        log: Log = request.getfixturevalue("log")  # which a server that starts would configure away
        refused = httpx2.get(f"{url}/sign-in", headers={"X-Forwarded-For": told})
        api = httpx2.get(f"{url}/api/v1/confirmations", headers={"X-Forwarded-For": told})
        page = httpx2.get(f"{url}/sign-in", headers={"X-Forwarded-For": "198.51.100.7"})

    assert (refused.status_code, page.status_code) == (400, 200)
    assert "must send the caller's address in X-Forwarded-For" in refused.text
    assert api.json()["type"] == "urn:confirmhub:no_address"
    assert [line for line in log.lines if told in line] == []
    assert any('"- \\"GET /sign-in\\" 400' in line for line in log.lines)


def test_a_caller_has_one_address_in_any_spelling() -> None:
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["client"])

    for spelled in ("192.0.2.1", "::ffff:192.0.2.1", "2001:DB8::1", "2001:db8:0::1"):
        asyncio.run(Addressed(app)({"type": "http", "client": (spelled, 7)}, None, None))

    assert seen == [("192.0.2.1", 7)] * 2 + [("2001:db8::1", 7)] * 2

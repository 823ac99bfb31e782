"""The API as it is served: behind uvicorn, in the one application."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db import connections
from pytest_django import DjangoDbBlocker

from confirmhub.confirmations.principals import Principal
from tests.bridge.hosts import make_token
from tests.bridge.serving import served
from tests.factories import make_pending


@pytest.fixture
def url(
    transactional_db: None, django_db_blocker: DjangoDbBlocker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    # The server's threads end with it, and would leave the connections that they keep.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    with django_db_blocker.unblock(), served() as url:
        yield url


def test_a_requester_reads_a_confirmation_over_http(url: str, agent: Principal, alice: User) -> None:
    asked = make_pending(agent)
    path = f"{url}/api/v1/confirmations/{asked.id}"
    token = make_token(alice, resource=f"{url}/mcp")

    with httpx2.Client(headers={"Authorization": f"Bearer {token}"}) as client:
        answer = client.get(path)
        head = client.head(path)
    stranger = httpx2.get(path)

    assert answer.status_code == 200
    assert answer.json()["id"] == str(asked.id)
    assert (head.status_code, head.content) == (200, b"")
    assert stranger.status_code == 401
    metadata = f"{url}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{metadata}"' in stranger.headers["WWW-Authenticate"]

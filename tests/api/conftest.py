"""Callers of the API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from tests.api.serving import Caller, make_service
from tests.bridge.hosts import make_token

type Get = Callable[..., HttpResponse]


@pytest.fixture(autouse=True)
def static_root(settings: Settings, tmp_path: Path) -> None:
    """Whitenoise warns of a folder that is missing."""
    settings.STATIC_ROOT = tmp_path


@pytest.fixture
def token(alice: User, settings: Settings) -> str:
    """A token of the agent that acts for alice."""
    return make_token(alice, resource=settings.MCP_RESOURCE)


@pytest.fixture
def get(token: str) -> Get:
    """Read a confirmation as that agent, or with another Authorization header."""

    def read(
        confirmation_id: UUID | str, authorization: str | None = f"Bearer {token}", **more: Any
    ) -> HttpResponse:
        headers = {} if authorization is None else {"Authorization": authorization}
        return Client().get(f"/api/v1/confirmations/{confirmation_id}", headers=headers, **more)

    return read


@pytest.fixture
def program(url: str, alice: User) -> Caller:
    """A program that alice lets act for her."""
    return Caller(url, make_token(alice, resource=f"{url}/mcp"))


@pytest.fixture
def service(url: str) -> Caller:
    return make_service(url)

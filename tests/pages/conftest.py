"""People with a browser's session, and what an agent of theirs has asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from tests.factories import AUDIENCE, make_pending

DELETE = Action(
    audience=AUDIENCE,
    name="delete_file",
    arguments={"path": "/srv/reports/Q3-\u202efdp.exe", "recursive": False},
)
SEEN = Observation(facts=(("Kind", "regular file"), ("Size", "2 413 568 bytes")), fingerprint="etag-1")


@pytest.fixture(autouse=True)
def static_root(settings: Settings, tmp_path: Path) -> None:
    """Whitenoise warns of a folder that is missing."""
    settings.STATIC_ROOT = tmp_path


@pytest.fixture
def browser(alice: User) -> Client:
    """Alice's browser, signed in."""
    return signed_in(alice)


@pytest.fixture
def stranger(bob: User) -> Client:
    """Bob's browser, signed in."""
    return signed_in(bob)


@pytest.fixture
def pending(agent: Principal) -> Confirmation:
    """What alice's agent asks."""
    return make_pending(
        agent,
        action=DELETE,
        summary="Removing an outdated copy.",
        observation=SEEN,
        question="Delete one file from reports?",
    )


@pytest.fixture
def form(pending: Confirmation) -> Callable[..., dict[str, str]]:
    """What the page of `pending` sends."""

    def fields(verdict: str = "approve", **more: str) -> dict[str, str]:
        return {"verdict": verdict, "digest_shown": bytes(pending.view_digest).hex(), "reason": "", **more}

    return fields


def signed_in(user: User) -> Client:
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    return client

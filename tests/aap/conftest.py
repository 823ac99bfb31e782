"""A served hub, callers of its approval protocol, and alice, who decides."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from confirmhub.confirmations.models import Rule
from confirmhub.confirmations.states import Mode
from tests.aap.raw import Raw
from tests.api.serving import AUDIENCE, make_service
from tests.bridge.hosts import make_token

AGENT = "https://agent.example.com"


@pytest.fixture
def base(url: str) -> str:
    """What the protocol calls the base URL."""
    return f"{url}/aap"


@pytest.fixture
def token(url: str, alice: User) -> str:
    """A credential of alice's agent."""
    return make_token(alice, resource=f"{url}/mcp")


@pytest.fixture
def raw(base: str, token: str) -> Raw:
    return Raw(base, token)


@pytest.fixture
def reviewers(alice: User) -> Group:
    """The group that decides on what the services of these audiences ask."""
    group = Group.objects.create(name="reviewers")
    group.user_set.add(alice)
    for rank, audience in enumerate((AUDIENCE, AGENT)):
        Rule.objects.create(
            name=audience, rank=rank, audience=audience, mode=Mode.APPROVE, approver_group=group
        )
    return group


@pytest.fixture
def service(url: str, base: str, reviewers: Group) -> Raw:
    """A service for whose calls alice decides, as one of the reviewers."""
    return Raw(base, make_service(url).token)

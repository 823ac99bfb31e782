"""Three replicas behind nginx, for all tests of this folder."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoDbBlocker

from tests.bridge.hosts import make_token
from tests.replicas.hosts import Host
from tests.replicas.serving import Balanced, balanced


@pytest.fixture(scope="package")
def cluster(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Balanced]:
    with django_db_blocker.unblock(), balanced(replicas=3) as found:
        yield found


@pytest.fixture
def token(cluster: Balanced, transactional_db: None, alice: User) -> str:
    return make_token(alice, resource=f"{cluster.url}/mcp")


@pytest.fixture
def host(cluster: Balanced, token: str) -> Iterator[Host]:
    with Host(cluster.url, token, trust=trusting(cluster)) as found:
        yield found


def trusting(cluster: Balanced) -> ssl.SSLContext:
    """What a client needs to trust the balancer."""
    return ssl.create_default_context(cafile=cluster.certificate)

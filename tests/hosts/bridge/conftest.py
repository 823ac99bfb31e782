"""The application, served with tools that only tests have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from tests.bridge.serving import served


@pytest.fixture(scope="module")
def application(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The public URL of a server that serves for as long as the module's tests run."""
    tools = override_settings(GUARDED_TOOLS=["tests.hosts.bridge.fixtures.lamps"])
    with tools, django_db_blocker.unblock(), served() as url:
        yield url

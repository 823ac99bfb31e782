"""Fixtures for every test: a throw-away Postgres, people, and a principal that acts for one of them."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings as hypothesis

ROOT = Path(__file__).resolve().parent.parent

hypothesis.register_profile("default", max_examples=500, deadline=None)
hypothesis.register_profile("long", max_examples=20_000, deadline=None)
hypothesis.load_profile("default")

# What takes longest begins first, and one after the other: begun last, each would run on while the other
# processes have nothing left, and begun at once they would take the cores from one another.
LONG = (
    "tests/faults/",
    "tests/test_ground_rules.py::test_mypy",
    "tests/e2e/",
    "tests/ops/test_up.py",
    "tests/ops/test_misconfigured.py",
)

_cluster = contextlib.ExitStack()


def _provide_environment() -> None:
    """Set what the settings read, before anything reads them.

    One Postgres a run, which the processes of xdist share: the first process starts it and migrates a
    database that every test database is then copied from.
    """
    os.environ["DJANGO_SETTINGS_MODULE"] = "confirmhub.settings"
    for name in ("SECRET_KEY", "SEALING_KEYS", "TOKEN_KEY", "RECEIPT_KEYS"):
        os.environ.setdefault(name, secrets.token_hex(32))
    for name in ("FILE_ROOTS", "PUBLIC_URL", "EMAIL_FILE_PATH"):
        os.environ.pop(name, None)
    if "STATIC_ROOT" not in os.environ:  # whitenoise warns where there is none, and a warning is an error
        os.environ["STATIC_ROOT"] = _cluster.enter_context(TemporaryDirectory())
    # No test goes to the network, and each client would load the system's authorities, for 20 ms of a core.
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = _cluster.enter_context(TemporaryDirectory())
    if "DATABASE_URL" in os.environ:
        return
    from confirmhub.ops.postgres import temporary

    os.environ["DATABASE_URL"] = _cluster.enter_context(temporary())
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, check=True, timeout=120
    )
    os.environ["CONFIRMHUB_TEST_TEMPLATE"] = "yes"


def _adapt_settings() -> None:
    from django.conf import settings

    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # slow ones are slow on purpose
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }
    # Nobody collects the static files for a test; they are looked up where they lie.
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = True
    if "CONFIRMHUB_TEST_TEMPLATE" in os.environ:
        database = settings.DATABASES["default"]
        # Where an xdist worker set Django up before us, the other keys are there and needed.
        database["TEST"] = database.get("TEST", {}) | {"TEMPLATE": database["NAME"]}


_provide_environment()
_adapt_settings()

import django

django.setup()

from django.contrib.auth.models import User
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from confirmhub.confirmations.principals import Principal
from tests import flushing
from tests.bridge.serving import served
from tests.factories import make_user, principal_for

TransactionTestCase._fixture_teardown = lambda _: flushing.flush()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", help="the long runs: faults, schemathesis, the crowd that waits"
    )


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: some always wait, for a browser or for time to pass."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return next((place for place, begins in enumerate(LONG) if item.nodeid.startswith(begins)), len(LONG))

    items.sort(key=place)


def pytest_unconfigure() -> None:
    _cluster.close()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """The tests' database, and what is in it before any test."""
    with django_db_blocker.unblock():
        flushing.remember()


@pytest.fixture
def alice(db: None) -> User:
    """The person whom `agent` acts for."""
    return make_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    """Somebody else, who has nothing to say about it."""
    return make_user("bob")


@pytest.fixture
def agent(alice: User) -> Principal:
    """An OAuth client that acts for alice."""
    return principal_for(alice)


@pytest.fixture(scope="module")
def application(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The public URL of a server that serves for as long as the module's tests run."""
    with django_db_blocker.unblock(), served() as url:
        yield url


@pytest.fixture
def url(application: str, transactional_db: None) -> str:
    """The same, with an empty database for each test."""
    return application

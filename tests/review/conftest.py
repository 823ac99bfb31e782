"""People of the review, and the browser of the tests of pages for what they see."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from pytest_django import Settings

from tests.browser.conftest import chromium, open_page, server, watch
from tests.factories import make_user
from tests.review.people import signed_in

__all__ = ["chromium", "open_page", "server", "watch"]


@pytest.fixture(autouse=True)
def static_root(settings: Settings, tmp_path: Path) -> None:
    """Whitenoise warns of a folder that is missing."""
    settings.STATIC_ROOT = tmp_path


@pytest.fixture
def onlooker(db: None) -> Client:
    """Somebody of the staff who may view confirmations, and nothing else."""
    olga = make_user("olga", is_staff=True)
    olga.user_permissions.add(Permission.objects.get(codename="view_confirmation"))
    return signed_in(olga)


@pytest.fixture
def otto(db: None) -> User:
    """An operator, by the group that `migrate` makes."""
    otto = make_user("otto", is_staff=True)
    otto.groups.add(Group.objects.get(name="Operators"))
    return otto


@pytest.fixture
def operator(otto: User) -> Client:
    return signed_in(otto)


@pytest.fixture
def auditor(db: None) -> Client:
    ada = make_user("ada", is_staff=True)
    ada.groups.add(Group.objects.get(name="Auditors"))
    return signed_in(ada)


@pytest.fixture
def administrator(db: None) -> Client:
    adam = make_user("adam", is_staff=True)
    adam.groups.add(Group.objects.get(name="Administrators"))
    return signed_in(adam)


@pytest.fixture
def root(db: None) -> Client:
    """A superuser."""
    return signed_in(make_user("root", is_staff=True, is_superuser=True))

"""The served application, a folder that is open to the file tools, and tokens."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from mcp_bridge import rounds
from tests.bridge import gated
from tests.bridge.gated import Gate
from tests.bridge.hosts import make_token
from tests.bridge.turns import LAST, Queue


@pytest.fixture
def root(tmp_path: Path, settings: Settings) -> Path:
    """A folder that is open to the file tools."""
    folder = tmp_path / "shared"
    folder.mkdir()
    settings.FILE_ROOTS = [folder]
    return folder


@pytest.fixture
def file(root: Path) -> Path:
    path = root / "report.txt"
    path.write_text("quarterly numbers\n")
    return path


@pytest.fixture
def token(url: str, alice: User) -> str:
    """All that an agent of alice's may have."""
    return make_token(alice, resource=f"{url}/mcp")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that are held for a tenth of a second, for the tests in which nobody decides."""
    monkeypatch.setattr(rounds, "HOLD", dt.timedelta(seconds=0.1))


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Where the tool of `gated` waits."""
    found = Gate()
    monkeypatch.setattr(gated, "gate", found)
    return found


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """The call that has to wait for its turn to act."""
    return Queue(monkeypatch)


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    """Room for as many calls as may act at once, and one more."""
    with ThreadPoolExecutor(max_workers=LAST + 1) as pool:
        yield pool

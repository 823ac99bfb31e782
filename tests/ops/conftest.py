"""Fixtures for the supervisor and for what it runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ops.service import Service, short_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder with a short path."""
    made = short_folder()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def up(folder: Path) -> Iterator[Callable[..., Service]]:
    """Start `up` on a state folder of this test. What still runs afterwards is killed."""
    started: list[Service] = []

    def start(*arguments: str, port: int | None = None, settings: dict[str, str] | None = None) -> Service:
        started.append(Service(folder / "state", *arguments, port=port, settings=settings))
        return started[-1]

    yield start
    for service in started:
        service.end()

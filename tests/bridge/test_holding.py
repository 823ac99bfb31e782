"""The folder that a file is held in between its place and its end: closed to others, or not used."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bridge.hosts import call_message, decide_at, post


def open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def one_that_holds_a_file(place: Path) -> None:
    place.mkdir(mode=0o700)
    (place / "file").write_text("what another call has left")


@pytest.mark.parametrize("swap", [open_to_all, one_that_holds_a_file])
def test_a_folder_that_somebody_swaps_before_it_is_opened_is_not_used(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path], None]
) -> None:
    def call() -> dict[str, Any]:
        message = call_message("delete_file", {"path": str(file)})
        found: dict[str, Any] = post(url, message, token=token).json()["result"]
        return found

    page = call()["structuredContent"]["page"]
    decide_at(page)
    place = file.parent / f".confirmhub-{page.rpartition('/')[2]}"
    mkdir = os.mkdir

    def then_swap(name: Any, *rest: Any, **how: Any) -> None:
        mkdir(name, *rest, **how)
        if name == place.name:
            place.rename(file.parent / "away")
            swap(place)

    monkeypatch.setattr(os, "mkdir", then_swap)
    result = call()
    monkeypatch.undo()

    assert "is not closed to others, or was swapped" in result["content"][0]["text"]
    assert file.read_text() == "quarterly numbers\n"
    assert [path.read_text() for path in place.rglob("*")] in ([], ["what another call has left"])

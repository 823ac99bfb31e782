"""The parts of the file tools on their own: a look within bounds, and a rename that replaces nothing."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from mcp_bridge.guarded import NotNow
from mcp_bridge.tools import looking, moving, renaming
from tests.bridge.hosts import call_message, decide_at, post
from tests.factories import kinds_of_events


def call(url: str, token: str, tool: str, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = post(url, call_message(tool, arguments), token=token).json()["result"]
    return found


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def test_a_file_that_takes_too_long_to_read_is_refused_in_words_that_help(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LOOK_WITHIN", 0.0)

    result = call(url, token, "delete_file", path=str(file))

    assert result["isError"]
    assert "could not be read within 0 s: its disk is too slow for its size. Nothing was done." in text(
        result
    )
    assert not Confirmation.objects.exists()


def test_a_look_that_is_not_possible_now_takes_no_yes_back(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = call(url, token, "delete_file", path=str(file))["structuredContent"]
    decide_at(asked["page"])
    with monkeypatch.context() as patch:
        patch.setattr(looking, "LOOK_WITHIN", 0.0)
        slow = call(url, token, "redeem_confirmation", confirmation_id=asked["confirmation_id"])
    then = Confirmation.objects.get().status

    done = call(url, token, "redeem_confirmation", confirmation_id=asked["confirmation_id"])

    assert "could not be read within" in text(slow)
    assert then == Status.APPROVED
    assert text(done) == f"Deleted {file}, 18 bytes."


def test_a_file_that_cannot_be_looked_at_once_more_is_put_back(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = call(url, token, "delete_file", path=str(file))["structuredContent"]
    decide_at(asked["page"])
    rename = os.rename

    def then_slow(*names: str, **handles: Any) -> None:
        rename(*names, **handles)
        monkeypatch.setattr(looking, "LOOK_WITHIN", 0.0)

    monkeypatch.setattr(os, "rename", then_slow)
    result = call(url, token, "redeem_confirmation", confirmation_id=asked["confirmation_id"])

    assert text(result).endswith("It was not deleted; it is back in its place.")
    assert file.read_text() == "quarterly numbers\n"
    assert kinds_of_events(Confirmation.objects.get()) == ["requested", "approve", "redeemed", "failed"]


def test_large_files_leave_threads_to_others(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "LARGE", 2)
    large, small = root / "large", root / "small"
    large.write_text("12")
    small.write_text("1")
    folder = os.open(root, os.O_RDONLY)

    def look(path: Path) -> looking.Seen:
        return looking.look(folder, path.name, PurePosixPath(path))

    try:
        for _ in range(looking.MOST_LARGE):
            assert looking._large.acquire(blocking=False)
        with pytest.raises(NotNow, match=r"4 other large files are being read\. Nothing was done; try again"):
            look(large)
        assert look(small).content.startswith("SHA-256")
    finally:
        for _ in range(looking.MOST_LARGE):
            looking._large.release()
    assert look(large).content.startswith("SHA-256")
    os.close(folder)


def test_others_are_answered_while_a_large_file_is_read(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch, alice: User
) -> None:
    reading, answered = threading.Event(), threading.Event()
    hashed = looking._hashed

    def slow(*args: Any, **how: Any) -> str:
        reading.set()
        assert answered.wait(timeout=20)
        return hashed(*args, **how)

    monkeypatch.setattr(looking, "_hashed", slow)
    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(call, url, token, "delete_file", path=str(file))
        assert reading.wait(timeout=20)
        listed = call(url, token, "list_confirmations")
        answered.set()

    assert not listed["isError"]
    assert not asked.result()["isError"]


def test_the_largest_file_that_is_read_whole_takes_a_fraction_of_its_time(root: Path) -> None:
    file = root / "large"
    file.touch()
    os.truncate(file, looking.MAX_HASHED)
    folder = os.open(root, os.O_RDONLY)

    started = time.monotonic()
    seen = looking.look(folder, file.name, PurePosixPath(file))
    took = time.monotonic() - started
    os.close(folder)

    assert seen.content.startswith("SHA-256 ")
    assert took < looking.LOOK_WITHIN


def test_a_move_that_was_cut_off_is_told_with_both_places(file: Path) -> None:
    new = file.with_name("new")
    arguments = moving.MoveFile(path=str(file), new_path=str(new))
    identity = uuid4()

    said = moving.MOVE_FILE.unfinished(identity, arguments)

    held = file.parent / f".confirmhub-{identity}" / "file"
    assert said == f"The file may be held, not moved, as {held}, or be at {new}."


@pytest.mark.parametrize("way", ["in-one-step", "by-a-link"])
def test_a_rename_replaces_nothing(root: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "by-a-link":
        monkeypatch.setattr(renaming, "_renameat2", None)
    for name in ("a", "b"):
        (root / name).write_text(name)
    folder = os.open(root, os.O_RDONLY)
    try:
        renaming.rename("a", "c", src=folder, dst=folder)
        with pytest.raises(FileExistsError):
            renaming.rename("c", "b", src=folder, dst=folder)
        with pytest.raises(FileNotFoundError):
            renaming.rename("a", "d", src=folder, dst=folder)
    finally:
        os.close(folder)

    assert {path.name: path.read_text() for path in root.iterdir()} == {"b": "b", "c": "a"}

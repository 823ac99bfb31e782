"""Between the question and the act: the file that is deleted is the file that was shown, or none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from confirmhub.confirmations import redeemer
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from mcp_bridge.tools import looking
from tests.bridge.hosts import call_message, decide_at, post
from tests.factories import kinds_of_events


def ask(url: str, token: str, file: Path) -> str:
    """Ask to delete it; return the page."""
    answer = post(url, call_message("delete_file", {"path": str(file)}), token=token)
    return str(answer.json()["result"]["structuredContent"]["page"])


def redeem(url: str, token: str, page: str) -> dict[str, Any]:
    identity = {"confirmation_id": page.rpartition("/")[2]}
    result: dict[str, Any] = post(url, call_message("redeem_confirmation", identity), token=token).json()[
        "result"
    ]
    return result


def rewrite(file: Path) -> None:
    """The same size and the same time; only the content differs."""
    before = file.stat()
    file.write_text("quarterly numberz\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(file: Path) -> None:
    """An equal file, which is another one."""
    before = file.stat()
    other = file.with_name("other")
    other.write_bytes(file.read_bytes())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(file)


def touch(file: Path) -> None:
    os.utime(file, ns=(0, 0))


def link_outside(file: Path) -> None:
    outside = file.parents[1] / "precious.txt"
    outside.write_text("quarterly numbers\n")
    file.unlink()
    file.symlink_to(outside)


def link_inside(file: Path) -> None:
    other = file.with_name("thesis.txt")
    file.rename(other)
    file.symlink_to(other)


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def make_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def link_once_more(file: Path) -> None:
    """The same file; but deleting this name of it no longer deletes its content."""
    os.link(file, file.parents[1] / "second")


CHANGES = [
    rewrite,
    replace,
    touch,
    link_once_more,
    Path.unlink,
    link_outside,
    link_inside,
    make_folder,
    make_pipe,
]


def contents(folder: Path) -> dict[str, Any]:
    """Everything below it, with what it is and holds."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_ino,
            path.is_symlink() or (path.is_file() and path.read_bytes()),
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_target_is_left_and_the_yes_is_taken_back(
    url: str, token: str, file: Path, change: Callable[[Path], None]
) -> None:
    page = ask(url, token, file)
    decide_at(page)
    change(file)
    before = contents(file.parents[1])

    result = redeem(url, token, page)

    assert result["isError"]
    assert "The target is not what it was when the question was asked." in result["content"][0]["text"]
    assert contents(file.parents[1]) == before
    assert kinds_of_events(Confirmation.objects.get()) == ["requested", "approve", "revoked"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_after_the_last_look_is_noticed_and_put_back(
    url: str, token: str, file: Path, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The race between the check and the act: it changes when the yes is spent already."""
    page = ask(url, token, file)
    decide_at(page)
    before: dict[str, Any] = {}

    redeem_together = redeemer.redeem_together

    async def then_change(**how: Any) -> Any:
        receipt = await redeem_together(**how)
        change(file)
        before.update(contents(file.parents[1]))
        return receipt

    monkeypatch.setattr(redeemer, "redeem_together", then_change)
    result = redeem(url, token, page)

    assert result["isError"]
    assert contents(file.parents[1]) == before
    assert kinds_of_events(Confirmation.objects.get()) == ["requested", "approve", "redeemed", "failed"]


def test_an_approval_to_take_one_of_two_names_is_no_approval_to_take_the_last(
    url: str, token: str, file: Path
) -> None:
    other = file.with_name("second")
    os.link(file, other)
    page = ask(url, token, file)
    decide_at(page)
    other.unlink()

    result = redeem(url, token, page)

    assert "The target is not what it was when the question was asked." in result["content"][0]["text"]
    assert file.exists()
    assert Confirmation.objects.get().status == Status.REVOKED


def rewrite_the_middle(file: Path) -> None:
    """Where a large file is not hashed."""
    before = file.stat()
    with file.open("r+b") as opened:
        opened.seek(before.st_size // 2)
        opened.write(b"x")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def large(file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 3 MiB, which is too large to hash whole."""
    monkeypatch.setattr(looking, "MAX_HASHED", 2 * 2**20)
    monkeypatch.setattr(looking, "MAX_END", 2**20)
    os.truncate(file, 3 * 2**20)
    return file


LARGE_CHANGES = [rewrite_the_middle, touch, link_once_more]


@pytest.mark.parametrize("change", LARGE_CHANGES)
def test_a_large_file_that_changed_is_left_and_the_yes_is_taken_back(
    url: str, token: str, large: Path, change: Callable[[Path], None]
) -> None:
    page = ask(url, token, large)
    decide_at(page)
    change(large)

    assert redeem(url, token, page)["isError"]
    assert large.stat().st_size == 3 * 2**20
    assert Confirmation.objects.get().status == Status.REVOKED


@pytest.mark.parametrize("change", LARGE_CHANGES)
def test_a_large_file_that_changed_after_the_last_look_is_left(
    url: str, token: str, large: Path, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ask(url, token, large)
    decide_at(page)
    redeem_together = redeemer.redeem_together

    async def then_change(**how: Any) -> Any:
        receipt = await redeem_together(**how)
        change(large)
        return receipt

    monkeypatch.setattr(redeemer, "redeem_together", then_change)
    result = redeem(url, token, page)

    assert "was changed at the last moment. It was not deleted." in result["content"][0]["text"]
    assert large.stat().st_size == 3 * 2**20
    assert kinds_of_events(Confirmation.objects.get()) == ["requested", "approve", "redeemed", "failed"]


def test_a_name_that_is_taken_meanwhile_is_not_overwritten(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ask(url, token, file)
    decide_at(page)
    rename = os.rename

    def rewrite_and_occupy(source: str, *rest: Any, **how: Any) -> None:
        rewrite(file)
        rename(source, *rest, **how)
        file.write_text("somebody else's")

    monkeypatch.setattr(os, "rename", rewrite_and_occupy)
    result = redeem(url, token, page)
    monkeypatch.undo()

    assert result["isError"]
    assert "its name was taken meanwhile, so it is kept in the folder" in result["content"][0]["text"]
    assert file.read_text() == "somebody else's"
    kept = file.parent / f".confirmhub-{page.rpartition('/')[2]}" / "file"
    assert kept.read_text() == "quarterly numberz\n"


def test_a_parent_that_became_a_link_leads_nowhere(url: str, token: str, root: Path) -> None:
    folder = root / "a"
    folder.mkdir()
    file = folder / "report.txt"
    file.write_text("quarterly numbers\n")
    page = ask(url, token, file)
    decide_at(page)
    folder.rename(root / "b")
    folder.symlink_to(root / "b")

    result = redeem(url, token, page)

    assert "is a link" in result["content"][0]["text"]
    assert (root / "b" / "report.txt").exists()
    assert Confirmation.objects.get().status == Status.REVOKED


def test_a_change_before_the_decision_makes_a_new_question(url: str, token: str, file: Path) -> None:
    first = ask(url, token, file)
    rewrite(file)

    second = ask(url, token, file)

    assert first != second
    assert [row.status for row in Confirmation.objects.order_by("requested_at")] == [
        Status.CANCELLED,
        Status.PENDING,
    ]


def test_a_change_after_the_decision_needs_a_new_one(url: str, token: str, file: Path) -> None:
    page = ask(url, token, file)
    decide_at(page)
    rewrite(file)

    answer = post(url, call_message("delete_file", {"path": str(file)}), token=token).json()["result"]

    assert answer["isError"]
    assert "The target is not what it was" in answer["content"][0]["text"]
    assert answer["content"][0]["text"].endswith(
        "Call delete_file again with the same arguments: the person is shown what changed."
    )
    assert file.exists()
    assert Confirmation.objects.get().status == Status.REVOKED
    asked = post(url, call_message("delete_file", {"path": str(file)}), token=token).json()["result"]
    assert asked["structuredContent"]["page"] != page
    assert "\nChanged since it was allowed before: Content.\n" in asked["content"][0]["text"]

"""The state folder refuses what would not be ours alone, each time in one line."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from confirmhub.ops import state
from confirmhub.ops.errors import CannotStart


def refusal(folder: Path) -> str:
    with pytest.raises(CannotStart) as refused:
        state.prepare(folder=folder)
    text = str(refused.value)
    assert "\n" not in text
    return text


def test_a_new_folder_is_closed_to_others_and_holds_its_secrets(folder: Path) -> None:
    made = state.prepare(folder=folder / "a" / "state")

    assert stat.S_IMODE(made.folder.stat().st_mode) == 0o700
    secrets = {path.name: path.read_text().strip() for path in made.secrets.iterdir()}
    assert set(secrets) == set(state.SECRETS)
    assert len(set(secrets.values())) == len(state.SECRETS)
    assert min(map(len, secrets.values())) >= 32
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.secrets.iterdir()} == {0o600}


def test_secrets_are_never_written_again(folder: Path) -> None:
    made = state.prepare(folder=folder)
    (made.secrets / "sealing-keys").write_text(f"{'n' * 40}\n{'o' * 40}\n")  # the operator rotated them
    before = {path: path.read_bytes() for path in made.secrets.iterdir()}

    state.prepare(folder=folder)

    assert {path: path.read_bytes() for path in made.secrets.iterdir()} == before


def test_a_damaged_secret_is_refused(folder: Path) -> None:
    made = state.prepare(folder=folder)
    (made.secrets / "token-key").write_text("")

    assert "token-key is damaged" in refusal(folder)


def test_a_secret_that_others_can_read_is_refused(folder: Path) -> None:
    made = state.prepare(folder=folder)
    (made.secrets / "secret-key").chmod(0o644)

    assert "secret-key is open to other users" in refusal(folder)


def test_a_secret_that_is_a_link_is_refused(folder: Path) -> None:
    made = state.prepare(folder=folder)
    (made.secrets / "secret-key").unlink()
    (made.secrets / "secret-key").symlink_to("/etc/hostname")

    assert "secret-key is not a file of yours" in refusal(folder)


def test_another_users_folder_is_refused(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
        theirs = folder
    else:
        theirs = Path("/usr")

    assert "belongs to another user" in refusal(theirs)


def test_a_folder_in_use_for_something_else_is_refused_and_left_as_it_is(folder: Path) -> None:
    (folder / "thesis.txt").write_text("")
    folder.chmod(0o755)

    assert "is open to other users" in refusal(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


def test_a_folder_that_everybody_shares_is_refused_even_when_it_is_empty(folder: Path) -> None:
    folder.chmod(0o1777)

    assert "is open to other users" in refusal(folder)


def test_an_empty_folder_is_closed(folder: Path) -> None:
    folder.chmod(0o755)

    state.prepare(folder=folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_path_too_long_for_a_socket_is_refused_before_anything_is_made(folder: Path) -> None:
    deep = folder / ("d" * 100)

    assert "bytes too long for a socket" in refusal(deep)
    assert not deep.exists()


def test_a_path_with_a_comma_is_refused(folder: Path) -> None:
    assert "comma" in refusal(folder / "a,b")


def test_a_file_in_the_place_is_refused(folder: Path) -> None:
    (folder / "state").write_text("")

    assert "is not a folder" in refusal(folder / "state")


def test_a_place_that_cannot_be_written_is_refused() -> None:
    assert "that you can write to" in refusal(Path("/proc/confirmhub"))


def test_a_full_disk_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 1024**2))

    assert "Only 5 MB are free" in refusal(folder)


def test_a_disk_that_fills_up_leaves_no_half_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    assert "No room left" in refusal(folder)
    assert list((folder / "secrets").iterdir()) == []


@pytest.mark.parametrize("given", ["state", "./state", "~/state"])
def test_a_relative_path_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(state.VARIABLE, given)

    with pytest.raises(CannotStart, match="absolute"):
        state.locate()


def test_the_place_follows_the_desktops_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(state.VARIABLE, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert state.locate() == Path("/data/confirmhub")
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", "/home/alice")
    assert state.locate() == Path("/home/alice/.local/share/confirmhub")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert state.locate() == Path("/var/lib/confirmhub")


def test_the_demo_files_come_back(folder: Path) -> None:
    made = state.prepare(folder=folder)
    (made.demo_files / "old-report.txt").unlink()

    state.prepare(folder=folder)

    assert {path.name for path in made.demo_files.iterdir()} == set(state.DEMO_FILES)


def test_a_folder_is_reached_through_a_link(folder: Path) -> None:
    (folder / "real").mkdir(mode=0o700)
    (folder / "link").symlink_to(folder / "real")

    # Its own path, since a link that is turned later must not turn the service with it.
    assert (
        state.prepare(folder=folder / "link").folder
        == Path(tempfile.gettempdir()).resolve() / folder.name / "real"
    )

"""No flood of requests fills the disk with what is logged of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from confirmhub.ops import logfiles
from tests.notifications.support import eventually

WRITER = "import sys\nfor line in sys.stdin: print(line * 3, end='', flush=True)"


def test_a_log_that_grew_long_begins_anew_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfiles, "KEEP", 20)
    log, other = tmp_path / "web.log", tmp_path / "beat.log"
    other.write_text("short\n")
    with log.open("ab") as output:
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER], stdin=subprocess.PIPE, stdout=output, text=True, bufsize=1
        )
    assert writer.stdin
    with writer, writer.stdin:
        for word in ("first", "second", "third"):
            writer.stdin.write(f"{word}\n")
            eventually(lambda word=word: log.read_text().endswith(f"{word}\n" * 3))
            logfiles.shorten(tmp_path)

    assert (tmp_path / "web.log.1").read_text() == "first\n" * 3 + "second\n" * 3
    assert log.read_text() == "third\n" * 3
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["beat.log", "web.log", "web.log.1"]


def test_a_log_is_cut_where_the_disk_has_no_room_for_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(logfiles, "KEEP", 20)
    monkeypatch.setattr(shutil, "copyfile", full)
    (tmp_path / "web.log").write_text("line\n" * 10)

    logfiles.shorten(tmp_path)

    assert (tmp_path / "web.log").read_text() == ""


def test_a_log_that_somebody_takes_away_meanwhile_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfiles, "KEEP", 20)
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    (tmp_path / "web.log").write_text("x" * 30)

    logfiles.shorten(tmp_path)

    assert (tmp_path / "web.log").read_text() == ""

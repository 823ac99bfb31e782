"""The demo host, as a program: the whole walk with a real browser, and what it says where it cannot."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from confirmhub.ops import demo
from tests.factories import PASSWORD, kinds_of_events

WITHIN = 120  # seconds


def run_demo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "confirmhub.ops.demo", *arguments],
        env=os.environ
        | {"CONFIRMHUB_DEMO_USER": "alice", "CONFIRMHUB_DEMO_PASSWORD": PASSWORD}
        | environment,
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )


def test_the_whole_walk_with_a_browser(url: str, root: Path, alice: User) -> None:
    ran = run_demo("--url", url, "--auto")

    assert (ran.returncode, ran.stderr) == (0, "")
    confirmation = Confirmation.objects.get()
    assert confirmation.status == Status.REDEEMED
    assert kinds_of_events(confirmation) == ["requested", "approve", "redeemed", "succeeded", "refused"]
    for line in [
        "The host needs your permission. Sign in and allow it here:",
        "This call needs more than you have allowed, files:delete. Allow it here, too:",
        "The file is gone.",
        "Refused: This confirmation was already redeemed",
        f"/confirm/{confirmation.id}",
    ]:
        assert line in ran.stdout
    assert list(root.iterdir()) == []


def test_it_finds_the_running_service_and_calls_any_tool(
    url: str, root: Path, file: Path, alice: User, tmp_path: Path
) -> None:
    (tmp_path / "lock").write_text(f"{url}, process 1\n")
    arguments = json.dumps({"path": str(file)})

    ran = run_demo("--auto", "--call", "delete_file", arguments, CONFIRMHUB_STATE=str(tmp_path))

    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"Sign in to {url}/mcp" in ran.stdout
    assert f"Answer: Deleted {file}" in ran.stdout
    assert not file.exists()


def test_a_wrong_password_is_one_line(url: str, root: Path, alice: User) -> None:
    ran = run_demo("--url", url, "--auto", CONFIRMHUB_DEMO_PASSWORD="wrong")

    assert ran.returncode == 1
    assert ran.stderr == (
        "confirmhub: the sign-in was refused: check CONFIRMHUB_DEMO_USER and CONFIRMHUB_DEMO_PASSWORD\n"
    )


def test_without_an_open_folder_it_says_what_to_do(url: str, alice: User) -> None:
    ran = run_demo("--url", url, "--auto")

    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert "opens one by setting FILE_ROOTS" in ran.stderr


class Terminal:
    """Runs the demo in this process, for what it says before it has met a server or a browser."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        monkeypatch.setattr(logging, "disable", lambda: None)
        monkeypatch.setenv("CONFIRMHUB_DEMO_USER", "alice")
        monkeypatch.setenv("CONFIRMHUB_DEMO_PASSWORD", PASSWORD)

    def complaint(self, *arguments: str) -> str:
        self.monkeypatch.setattr(sys, "argv", ["demo", *arguments])
        assert demo.main() == 1
        printed = self.capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        return printed.err


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(monkeypatch, capsys)


def test_without_a_server_it_says_how_to_start_one(terminal: Terminal) -> None:
    assert "Start it in another terminal with ./hub up" in terminal.complaint("--url", "http://localhost:1")
    assert "nothing answers at http://localhost:1." in terminal.complaint("--port", "1")
    assert "nothing answers at nonsense" in terminal.complaint("--url", "nonsense")


@pytest.mark.parametrize("lock", [None, "", "./hub manage, process 1", "\udcff"])
def test_where_nothing_runs_it_looks_where_it_would(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lock: str | None
) -> None:
    monkeypatch.setenv("CONFIRMHUB_STATE", str(tmp_path))
    if lock is not None:
        (tmp_path / "lock").write_bytes(lock.encode(errors="surrogateescape"))

    assert demo._found() == "http://localhost:8000"


@pytest.mark.parametrize("arguments", ["", "[]", "{", "null"])
def test_arguments_that_are_no_object_are_one_line(terminal: Terminal, arguments: str) -> None:
    said = terminal.complaint("--url", "http://localhost:1", "--call", "list_files", arguments)

    assert "--call needs a tool and its arguments as JSON" in said


def test_a_server_by_another_name_is_told(terminal: Terminal, application: str) -> None:
    elsewhere = application.replace("localhost", "127.0.0.1")

    assert "goes by another name there" in terminal.complaint("--url", elsewhere)


def test_it_plays_nobody_in_particular(
    terminal: Terminal, application: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONFIRMHUB_DEMO_USER")

    assert "set CONFIRMHUB_DEMO_USER" in terminal.complaint("--url", application, "--auto")


def test_without_a_browser_it_says_what_to_install(
    terminal: Terminal, application: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    assert "needs Chromium on PATH" in terminal.complaint("--url", application, "--auto")

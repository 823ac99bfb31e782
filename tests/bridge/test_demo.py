"""The demo host, as a program: the whole walk with a real browser, and what it says where it cannot."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from confirmhub.confirmations import ledger
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status, Verdict
from confirmhub.oauth import connections
from confirmhub.ops import demo
from tests.bridge.hosts import decide_at, in_database
from tests.confirmations.clock import make_overdue
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
    assert connections.list_connections(user=alice) == []


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


class Sits:
    """Somebody at the demo's screen, without a browser: they allow, and answer each question in turn."""

    def __init__(self, user: User, *answers: Callable[[str], None]) -> None:
        self._user = user
        self._answers = list(answers)

    async def allow(self, link: str) -> None:
        back = await in_database(self._consent, link)
        async with httpx2.AsyncClient() as http:
            await http.get(back)

    async def decide(self, link: str) -> None:
        await in_database(self._answers.pop(0), link)

    def _consent(self, link: str) -> str:
        browser = Browser(SERVER_NAME="localhost")
        browser.force_login(self._user, backend="django.contrib.auth.backends.ModelBackend")
        parts = urlsplit(link)
        return browser.post(f"{parts.path}?{parts.query}", {"verdict": "allow"})["Location"]


type Walk = Callable[..., tuple[int, str]]


@pytest.fixture
def walk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str, root: Path, alice: User
) -> Walk:
    """Run the demo with somebody at its screen. The exit status, and what was printed."""

    def run(*answers: Callable[[str], None], arguments: tuple[str, ...] = ()) -> tuple[int, str]:
        monkeypatch.setattr(logging, "disable", lambda: None)
        monkeypatch.setattr(sys, "argv", ["demo", "--url", url, *arguments])
        monkeypatch.setattr(demo, "AtTheScreen", lambda: Sits(alice, *answers))
        status = demo.main()
        printed = capsys.readouterr()
        assert printed.err == ""
        return status, printed.out

    return run


def deny(page: str) -> None:
    decide_at(page, Verdict.DENY)


def let_expire(page: str) -> None:
    confirmation = Confirmation.objects.get(id=page.rpartition("/")[2])
    asked_at = confirmation.requested_at
    make_overdue(confirmation, requested_at=asked_at - dt.timedelta(hours=1), decide_by=asked_at)


def take_back(page: str) -> None:
    """Say yes, and think better of it before the host comes for it."""
    decide_at(page)
    confirmation = Confirmation.objects.get(id=page.rpartition("/")[2])
    ledger.revoke(
        confirmation_id=confirmation.id,
        revoker=User.objects.get(pk=confirmation.requester_subject),
        reason="No.",
    )


@pytest.mark.parametrize("answer", [deny, take_back])
def test_a_no_ends_the_walk(walk: Walk, root: Path, answer: Callable[[str], None]) -> None:
    status, printed = walk(answer)

    assert status == demo.SAID_NO
    assert "nothing was done" in printed
    assert "Only a new call asks a new question" in printed
    assert "\n3  " not in printed
    assert f"/confirm/{Confirmation.objects.get().id}" in printed
    assert list(root.iterdir()) == []


def test_a_question_that_nobody_answers_is_told_and_is_no_success(walk: Walk, root: Path) -> None:
    status, printed = walk(let_expire)

    assert status == demo.NOT_IN_TIME
    assert "Time ran out before there was a yes" in printed
    assert "\n3  " not in printed
    assert list(root.iterdir()) == []


def test_what_changed_is_asked_again_and_then_the_walk_goes_on(walk: Walk, root: Path) -> None:
    def approve_the_old(page: str) -> None:
        decide_at(page)
        for file in root.iterdir():
            file.write_text("It is worth keeping now.\n")

    status, printed = walk(approve_the_old, decide_at)

    assert status == 0
    assert [*Confirmation.objects.order_by("requested_at").values_list("status", flat=True)] == [
        "revoked",
        "redeemed",
    ]
    assert "calls delete_file again with the same arguments" in printed
    assert (
        printed.index("calls delete_file again") < printed.index("The file is gone.") < printed.index("\n3  ")
    )
    assert printed.endswith(f"/confirm/{Confirmation.objects.get(status='redeemed').id}\n")
    assert "a yes is for one action, once" in printed


def test_a_changed_target_may_be_denied(walk: Walk, root: Path) -> None:
    def approve_the_old(page: str) -> None:
        decide_at(page)
        for file in root.iterdir():
            file.write_text("It is worth keeping now.\n")

    status, printed = walk(approve_the_old, deny)

    assert status == demo.SAID_NO
    assert "\n3  " not in printed


def test_a_call_of_any_tool_ends_with_what_came_of_it(walk: Walk, file: Path) -> None:
    call = ("--call", "delete_file", json.dumps({"path": str(file)}))

    assert walk(deny, arguments=call)[0] == demo.SAID_NO
    assert walk(let_expire, arguments=call)[0] == demo.NOT_IN_TIME
    assert walk(arguments=("--call", "list_files", '{"path": "/nowhere"}'))[0] == demo.FAILED
    assert walk(arguments=("--call", "list_files", "{}"))[0] == 0


def test_help_names_each_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["demo", "--help"])

    with pytest.raises(SystemExit):
        demo.main()

    printed = capsys.readouterr().out
    for status in (0, demo.FAILED, demo.SAID_NO, demo.NOT_IN_TIME, demo.STOPPED):
        assert f"{status} " in printed

"""`./hub up` as a process, and what the system says of the processes under it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 90.0  # seconds, on a machine that runs every other test at the same time


class Service:
    """One run of `up`, from its start to its end."""

    def __init__(
        self,
        state: Path,
        *arguments: str,
        port: int | None = None,
        command: Sequence[str | Path] = (sys.executable, "-m", "confirmhub.ops"),
        home: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.state = state
        self.port = port or free_port()
        self.said: list[str] = []
        env = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "HOME")}
        self.process = subprocess.Popen(
            [*command, "up", "--port", str(self.port), *arguments],
            cwd=ROOT,
            env=env
            | ({"HOME": str(home)} if home else {})
            | {"CONFIRMHUB_STATE": str(state)}
            | dict(settings or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            self.said.extend(lines)

    @property
    def text(self) -> str:
        return "".join(self.said)

    def wait_until_ready(self) -> Service:
        wait_until(lambda: "is ready at" in self.text or self.process.poll() is not None)
        assert "is ready at" in self.text, self.text
        return self

    def wait_for_end(self) -> int:
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def parts(self) -> dict[str, int]:
        """The pids of the children, by what they are."""
        names = {"confirmhub.ops.web": "web", " worker": "worker", " beat": "beat", "postgres -D": "postgres"}
        found = {}
        for pid in children(self.process.pid):
            command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            found |= {name: pid for mark, name in names.items() if mark in command}
        return found

    def everything(self) -> set[int]:
        """The pids of all that runs below it, grandchildren too."""
        found = {self.process.pid}
        while more := {child for pid in found for child in children(pid)} - found:
            found |= more
        return found - {self.process.pid}

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.HTTPError):
            return False

    def end(self) -> None:
        """Leave nothing behind, whatever the test did."""
        left = self.everything() if alive(self.process.pid) else set()
        kill(*left, *([self.process.pid] if self.process.poll() is None else []))
        self.wait_for_end()
        wait_until(lambda: not any(map(alive, left)))


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it took too long"
        threading.Event().wait(0.05)


def kill(*pids: int) -> None:
    """Kill them. One that has ended meanwhile needs no killing."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def alive(pid: int) -> bool:
    """Whether it runs. A zombie, which waits for somebody to ask what became of it, does not."""
    try:
        state = re.search(r"^State:\s+(\w)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state is not None and state[1] not in "ZX"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def short_folder() -> Path:
    """A folder for a state. pytest's own may be too deep for a socket."""
    return Path(tempfile.mkdtemp(prefix="hub-"))

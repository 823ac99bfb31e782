"""The whole product as a process, with a state folder and a home of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from confirmhub.ops import roles
from tests.ops.service import ROOT, Service, alive, short_folder, wait_until

STOPS_WITHIN = 5.0  # seconds; what `up` promises on a machine that has a core for it


class Product:
    """One state folder, and the run of `up` on it that there is at present."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.state = folder / "state"
        self.service = Service(self.state, command=launcher(), home=self.home)

    def wait_until_ready(self) -> None:
        """Wait for the first start, and read from its screen how to sign in."""
        self.service.wait_until_ready()
        shown = re.search(r"^ *Sign in +(\S+) +password (\S+)", self.service.text, re.MULTILINE)
        assert shown, self.service.text
        self.administrator, self.password = shown.groups()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.service.port}"

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    def file(self, name: str) -> Path:
        """Make a file in the folder that is open to the file tools, as `up` makes it."""
        path = self.state / "demo-files" / name
        path.write_text(f"This is {name}.\n")
        return path

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask the database, as the owner of the tables."""
        with psycopg.connect(self._database) as connection:
            return connection.execute(statement, values).fetchall()

    @property
    def _database(self) -> str:
        return f"postgresql://{roles.OWNER}@/{roles.DATABASE}?host={self.state}/pg/run"

    def answers(self) -> bool:
        """Whether a new connection to the database is served."""
        try:
            return self.rows("SELECT 1") == [(1,)]
        except psycopg.OperationalError:
            return False

    def up_again(self) -> None:
        """Start it on the same data and the same port, after it ended."""
        self.service = Service(self.state, port=self.service.port, command=launcher(), home=self.home)
        self.service.wait_until_ready()

    def stop(self) -> None:
        """End it as a service manager does, and hold it to what it promises."""
        busy = os.getloadavg()[0] / (os.cpu_count() or 1)
        deadline = time.monotonic() + STOPS_WITHIN * max(1.0, busy)
        self.service.process.send_signal(signal.SIGTERM)
        while (left := self.processes()) and time.monotonic() < deadline:
            threading.Event().wait(0.05)
        assert left == {}, f"{left} {self.service.text}"
        assert self.service.wait_for_end() == 0, self.service.text

    def processes(self) -> dict[int, str]:
        """The pids and commands of all that runs on this state folder, whoever started it.

        Not by descent: an orphan has another parent. The service's processes carry the folder in their
        environment, and Postgres, which gets none, works in it.
        """
        marks = (f"CONFIRMHUB_STATE={self.state}".encode(), str(self.state).encode())
        return {pid: _command(pid) for pid in _pids() if alive(pid) and _is_of(pid, *marks)}

    def kill(self) -> None:
        """Leave nothing behind, whatever the test did."""
        self.service.end()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.processes())


def launcher() -> list[str | Path]:
    """`./hub`, where it made this environment; elsewhere it would install first, so what it calls."""
    made_for = ROOT / ".venv/hub/root"
    if made_for.is_file() and made_for.read_text().strip() == str(ROOT):
        return [ROOT / "hub"]
    return [sys.executable, "-m", "confirmhub.ops"]


@contextmanager
def running() -> Iterator[Product]:
    """Start the product for the first time, and leave nothing of it."""
    folder = short_folder()
    try:
        product = Product(folder)
        try:
            product.wait_until_ready()
            yield product
        finally:
            product.kill()
    finally:
        shutil.rmtree(folder)


def _pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    except OSError:
        return "ended"


def _is_of(pid: int, variable: bytes, folder: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        where = os.fsencode(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:  # it ended, or is another user's
        return False
    return variable in environment or where.startswith(folder + b"/")

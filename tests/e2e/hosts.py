"""MCP hosts as programs, driven by the lines that `python_host.py` describes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from tests.e2e.person import Person
from tests.e2e.product import Product
from tests.hosts import nodes
from tests.ops.service import ROOT

PATIENCE = 40.0  # seconds for one line; an open question is held for 20

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
    """The command of the host on the TypeScript SDK, which is installed at the first call."""
    return nodes.program(Path(__file__).parent / "host.mjs")


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

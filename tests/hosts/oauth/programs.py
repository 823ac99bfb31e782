"""The hosts as programs that run for the whole session. What they are told, `python_host.py` describes."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.hosts import nodes

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PATIENCE = 40.0  # seconds for one line

type Line = dict[str, Any]


class Program:
    """One process that is one host after the other."""

    def __init__(self, command: Sequence[str | Path]) -> None:
        env = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "HOME")}
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def tell(self, **command: Any) -> Line:
        """Give it one command, and return its answer."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            pytest.fail(f"the host said nothing for {PATIENCE:.0f} s")
        assert line, f"the host ended: {self._process.wait()}"
        said: Line = json.loads(line)
        return said

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin
        self._process.stdin.close()

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")


def python() -> Program:
    """The hosts on the Python SDK."""
    return Program([sys.executable, "-m", "tests.hosts.oauth.python_host"])


def typescript() -> Program:
    """The hosts on both TypeScript SDKs."""
    return Program(nodes.program(Path(__file__).parent / "host.mjs"))


@dataclass
class Host:
    """A host of one make, in the program that can be it."""

    program: Program
    make: str

    def start(
        self,
        server: str,
        *,
        redirect: str,
        document: str | None = None,
        keeps_refresh_token: bool = True,
        resource: str | None = None,
    ) -> Line:
        """Be a fresh host and connect. `resource` is what its tokens are to be for, if not `server`."""
        return self.program.tell(
            start={
                "sdk": {"typescript 2": "second", "ours": "ours"}.get(self.make, "first"),
                "server": server,
                "redirect": redirect,
                "document": document,
                "name": f"Host ({self.make})",
                "keeps_refresh_token": keeps_refresh_token,
                # Two kinds of hosts stand on the first SDK: those that let it delete what they store.
                "invalidates": self.make != "typescript 1, bare",
                "resource": resource,
            }
        )

    def call(self, tool: str, *, times: int = 1, **arguments: Any) -> Line:
        return self.program.tell(call={"tool": tool, "arguments": arguments, "times": times})

    def answer(self, query: str) -> Line:
        """Bring it what the authorization server said."""
        return self.program.tell(answer=query)

    def wait_for_expiry(self) -> Line:
        return self.program.tell(wait="expiry")

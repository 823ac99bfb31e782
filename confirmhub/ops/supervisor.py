"""Keeps the processes of the service running, and ends them all.

One thread, one loop. A child that dies is started again after a pause that grows; none of them
outlives this process (`processes.spawn`).
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

from confirmhub.ops import checked, logfiles, processes
from confirmhub.ops.environment import ROOT
from confirmhub.ops.errors import CannotStart
from confirmhub.ops.postgres import Cluster

TICK = 0.1  # seconds between two looks at the children
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds before a child is started again
SETTLED = 30.0  # seconds of life after which its earlier deaths are forgotten
DEATHS_AT_START = 3  # a child that dies so often before all is ready will not get better
STOP_ALL_WITHIN = 4.7  # seconds for everything
STOP_WITHIN = 2.5  # seconds for all children together; an idle Celery worker may need 4, and loses nothing


@dataclass
class Child:
    """One process, by what starts it."""

    name: str
    module: Sequence[str]  # what follows `python -m`
    log: Path
    pass_fds: Sequence[int] = ()
    process: Popen[bytes] | None = None
    started_at: float = 0.0
    deaths: int = 0
    start_at: float = 0.0

    def start(self, env: Mapping[str, str]) -> None:
        with self.log.open("ab") as log:
            self.process = processes.spawn(
                [sys.executable, "-m", *self.module],
                output=log.fileno(),
                # Nothing is lost with it: what counts is committed in Postgres.
                dies_by=signal.SIGKILL,
                cwd=ROOT,
                env=env,
                pass_fds=self.pass_fds,
            )
        self.started_at = time.monotonic()

    def last_words(self) -> str:
        return checked.last_line(self.log.read_text("utf-8", errors="replace"))


@dataclass
class Supervisor:
    """The children and, where it is ours, the database under them."""

    children: list[Child]
    env: Mapping[str, str]
    cluster: Cluster | None
    say: Callable[[str], None]
    _ready: bool = field(default=False, init=False)

    def run_until(self, true: Callable[[], bool], *, within: float) -> None:
        """Start what is not running, and keep it running until `true()`.

        Raises:
            CannotStart: A setting is bad, a child keeps dying, or it takes longer than `within` seconds.
        """
        deadline = time.monotonic() + within
        while not true():
            if time.monotonic() > deadline:
                raise CannotStart(
                    f"Not ready after {within:.0f} s: see the logs in {self.children[0].log.parent}."
                )
            self._tend()
            time.sleep(TICK)
        self._ready = True

    def run(self) -> None:
        """Keep all running, for ever."""
        while True:
            self._tend()
            logfiles.shorten(self.children[0].log.parent)
            time.sleep(TICK)

    def stop(self) -> None:
        """End the children, all at the same time, then the database."""
        running = [child.process for child in self.children if child.process]
        for process in running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        deadline = began + STOP_WITHIN
        for process in running:
            left = max(0.0, deadline - time.monotonic())
            processes.stop(process, by=None, within=left)
        if self.cluster:
            # What is left of the time is the database's, for its last checkpoint.
            self.cluster.stop(within=began + STOP_ALL_WITHIN - time.monotonic())

    def _tend(self) -> None:
        if self.cluster and not self.cluster.running():
            self.say("Postgres ended; starting it again")
            self.cluster.restart()
        now = time.monotonic()
        for child in self.children:
            if child.process is None:
                if now >= child.start_at:
                    child.start(self.env)
            elif (code := child.process.poll()) is not None:
                self._buried(child, code, now)

    def _buried(self, child: Child, code: int, now: float) -> None:
        child.deaths = 1 if now - child.started_at > SETTLED else child.deaths + 1
        child.process = None
        if not self._ready and code == checked.MISCONFIGURED:
            raise CannotStart(child.last_words())
        if not self._ready and child.deaths >= DEATHS_AT_START:
            raise CannotStart(
                f"The {child.name} process does not start: {child.last_words()} (all of it: {child.log})."
            )
        pause = min(FIRST_PAUSE * 2 ** (child.deaths - 1), LONGEST_PAUSE)
        child.start_at = now + pause
        self.say(f"the {child.name} process ended ({code}); starting it again in {pause:g} s")

"""Child processes that never outlive the process that started them, whatever kills it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h

# Loaded before any fork: the bound child has dropped its rights, and the interpreter that it
# would import from may lie where it cannot read.
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Account:
    """A user to run as. None of root's groups come along."""

    name: str
    uid: int
    gid: int


def spawn(
    command: Sequence[str],
    *,
    output: int,
    dies_by: signal.Signals,
    cwd: Path,
    env: Mapping[str, str],
    account: Account | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, so that a Ctrl-C reaches the supervisor alone.

    When this process dies, however it dies, the kernel sends `dies_by` (Linux). The calling
    thread must live as long as the child may: the kernel watches the thread, not the process.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=dict(env),
        start_new_session=True,
        # It makes one system call, and takes no lock that another thread may hold.
        preexec_fn=_bound_to(os.getpid(), dies_by),  # noqa: PLW1509
        pass_fds=pass_fds,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


def stop(
    process: subprocess.Popen[bytes], *, signals: Sequence[signal.Signals], within: float
) -> None:
    """End `process` and its session: send each of `signals`, and give each `within` seconds."""
    for number in (*signals, signal.SIGKILL):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(within)
    # What it started shares its session's group; the group may well be gone by now.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def wait_until(true: Callable[[], bool], *, within: float, every: float = 0.02) -> bool:
    """Return whether `true()` came true within so many seconds."""
    deadline = time.monotonic() + within
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def _bound_to(parent: int, dies_by: signal.Signals) -> Callable[[], None] | None:
    if _libc is None:
        return None
    prctl, number = _libc.prctl, int(dies_by)

    def bind() -> None:
        # After the change of user, which would have cleared it.
        prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it died in between, and nobody would tell us again
            os._exit(1)

    return bind

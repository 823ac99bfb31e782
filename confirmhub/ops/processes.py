"""Child processes that never outlive the process that started them, whatever kills it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
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
    return subprocess.Popen(  # noqa: S603 - its callers name their own programs
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=dict(env),
        start_new_session=True,
        preexec_fn=_bound_to(os.getpid(), dies_by),  # noqa: PLW1509 - one system call, which takes no lock
        pass_fds=pass_fds,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


def stop(process: subprocess.Popen[bytes], *, by: signal.Signals | None, within: float) -> None:
    """End `process`: send it `by`, if any, wait `within` seconds, and kill what is left."""
    if by is not None and process.poll() is None:
        process.send_signal(by)
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # What it started shares its session's group; most often the group is gone by now.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


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

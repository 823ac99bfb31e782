"""What a file is at one moment: identity, size, times and content. Two looks tell whether it changed."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

from mcp.server.mcpserver.exceptions import ToolError

from mcp_bridge import threads
from mcp_bridge.guarded import NotNow
from mcp_bridge.tools import holding, paths

# Of a larger file only its ends are hashed, and the time of its last change of any kind (ctime) stands
# for what is between them.
MAX_HASHED = 256 * 2**20  # bytes
MAX_END = 64 * 2**20  # bytes
CHUNK = 2**20  # bytes

# One call looks three times at most and may wait 20 s for a person besides; hosts end a call after 60 s.
LOOK_WITHIN = 10.0  # seconds

# Of the threads in which targets are looked at, half stay free of large files.
LARGE = 16 * 2**20  # bytes
MOST_LARGE = threads.LOOKING // 2
_large = threading.BoundedSemaphore(MOST_LARGE)


@dataclass(frozen=True, slots=True)
class Seen:
    """A regular file as it is at one moment."""

    status: os.stat_result
    content: str

    @property
    def lasting(self) -> str:
        """What stays the same when the file is moved."""
        parts = (
            self.status.st_dev,
            self.status.st_ino,
            self.status.st_size,
            self.status.st_mtime_ns,
            self.status.st_nlink,  # to delete the last name is another act than to delete one of two
            self.content,
        )
        return hashlib.sha256(repr(parts).encode("ascii")).hexdigest()

    def fingerprint(self, *folders: int) -> str:
        """The file and the folders that it is taken from and put into, as 128 characters at most."""
        touched = "" if self.status.st_size <= MAX_HASHED else f"@{self.status.st_ctime_ns}"
        return f"{identity(*folders)}+{self.lasting}{touched}"

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What a person is shown of it, besides its name."""
        changed_at = modified_at(self.status)
        facts = [
            ("Size", f"{self.status.st_size} bytes"),
            ("Last changed", f"{changed_at:%Y-%m-%d %H:%M:%S} UTC" if changed_at else "unknown"),
            ("Content", self.content),
        ]
        if self.status.st_nlink > 1:
            facts.append(("Other names", f"{self.status.st_nlink - 1} more; the content stays there"))
        return tuple(facts)


def identity(*folders: int) -> str:
    """Which folders these handles are of: 32 hex digits. Another folder of the same name has another."""
    found = [(status.st_dev, status.st_ino) for status in map(os.fstat, folders)]
    return hashlib.sha256(repr(found).encode("ascii")).hexdigest()[:32]


def parts(fingerprint: str) -> tuple[str, str, str]:
    """The folders' identity, what stays of the file when it is moved, and its ctime or nothing."""
    folders, _, file = fingerprint.partition("+")
    lasting, _, touched = file.partition("@")
    return folders, lasting, touched


def modified_at(status: os.stat_result) -> dt.datetime | None:
    """When the content was last changed. Anybody can set it, also to what no calendar holds: None."""
    try:
        return dt.datetime.fromtimestamp(status.st_mtime, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return None


def look(folder: int, name: str, path: PurePosixPath) -> Seen:
    """The regular file of this name, as it is now.

    Raises:
        ToolError: There is none, or it is a link, a folder or something else.
        NotNow: It could not be read within 10 seconds, or too many large files are being read.
    """
    try:
        # Looked at before it is opened: opening a device or a pipe can do things.
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(before.st_mode):
            kind = "a link" if stat.S_ISLNK(before.st_mode) else "not a regular file"
            raise ToolError(f"{paths.shown(path)} is {kind}; this works on regular files alone.")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=folder), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not os.path.samestat(before, status):
                raise ToolError(f"{paths.shown(path)} is being replaced right now.")
            with _room(status.st_size, path):
                content = _hashed(file, size=status.st_size, path=path)
            # As it was before and after the reading, or what was read is no one state of it.
            after = os.fstat(file.fileno())
            if (after.st_size, after.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
                raise ToolError(f"{paths.shown(path)} is being written to right now.")
            return Seen(after, content)
    except FileNotFoundError as exc:
        raise ToolError(f"{paths.shown(path)} does not exist.{holding.beside(folder)}") from exc
    except OSError as exc:
        raise ToolError(f"{paths.shown(path)} cannot be read: {exc.strerror}.") from exc


def is_still(lasting: str, *, folder: int, name: str, path: PurePosixPath) -> bool:
    """Whether what has this name now is the file that was looked at.

    Raises:
        NotNow: As `look`.
    """
    try:
        return look(folder, name, path).lasting == lasting
    except NotNow:
        raise
    except ToolError:
        return False


@contextmanager
def _room(size: int, path: PurePosixPath) -> Iterator[None]:
    if size < LARGE:
        yield
        return
    if not _large.acquire(blocking=False):
        raise NotNow(
            f"{paths.shown(path)} was not looked at, since {MOST_LARGE} other large files are being read. "
            "Nothing was done; try again in 5 s."
        )
    try:
        yield
    finally:
        _large.release()


def _hashed(file: BinaryIO, *, size: int, path: PurePosixPath) -> str:
    """What the content is, in words. Bounded, also where the file grows while it is read."""
    whole = size <= MAX_HASHED
    digest = hashlib.sha256()
    until = time.monotonic() + LOOK_WITHIN
    for start, length in [(0, size)] if whole else [(0, MAX_END), (size - MAX_END, MAX_END)]:
        file.seek(start)
        left = length
        while left and (chunk := file.read(min(left, CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
            if time.monotonic() > until:
                raise NotNow(
                    f"{paths.shown(path)} could not be read within {LOOK_WITHIN:.0f} s: its disk is too slow "
                    "for its size. Nothing was done. If trying again does not help, it takes a person."
                )
    if whole:
        return f"SHA-256 {digest.hexdigest()}"
    return f"not hashed whole; SHA-256 of the first and last {MAX_END // 2**20} MiB {digest.hexdigest()}"

"""The state folder: the database, the secrets, the logs and the mail of the embedded default.

Only its owner can enter it. Secrets are made at the first start and never written again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from confirmhub.ops.errors import CannotStart

VARIABLE = "CONFIRMHUB_STATE"
SOCKET = Path("pg/run/.s.PGSQL.5432")
SOCKET_BYTES = 107  # sockaddr_un on Linux, less the closing zero byte (macOS: 103)
FREE_BYTES = 200 * 1024 * 1024  # a new database takes about 60 MB, and grows by its log first
SECRETS = ("secret-key", "sealing-keys", "token-key", "receipt-keys")


class State(NamedTuple):
    """The folder and the places in it."""

    folder: Path

    @property
    def cluster(self) -> Path:
        return self.folder / "pg"

    @property
    def secrets(self) -> Path:
        return self.folder / "secrets"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def mail(self) -> Path:
        return self.folder / "mail"

    @property
    def static(self) -> Path:
        return self.folder / "static"

    @property
    def demo_files(self) -> Path:
        return self.folder / "demo-files"


def locate() -> Path:
    """Return where the state folder is or should be.

    Raises:
        CannotStart: `CONFIRMHUB_STATE` is not usable as a path.
    """
    if given := os.environ.get(VARIABLE):
        if not given.startswith("/"):
            raise CannotStart(f"{VARIABLE} must be an absolute path, not {given!r}.")
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/lib/confirmhub")
    # XDG Base Directory Specification: a relative path there is to be ignored.
    data = os.environ.get("XDG_DATA_HOME", "")
    try:
        base = Path(data) if data.startswith("/") else Path.home() / ".local" / "share"
    except RuntimeError as exc:
        raise CannotStart(f"There is no home folder: set {VARIABLE} to a folder.") from exc
    return base / "confirmhub"


def prepare(*, folder: Path) -> State:
    """Make `folder` and its parts where they are missing, and check that it is ours alone.

    Raises:
        CannotStart: It is another user's, open to others, not writable, too deep, or full.
    """
    try:
        _check_path(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # From here on one path, whatever links lead there.
        folder = folder.resolve(strict=True)
        _check_path(folder)
        _check_owner(folder)
        state = State(folder)
        for part in (state.secrets, state.logs, state.mail, state.static):
            part.mkdir(mode=0o700, exist_ok=True)
        if not state.cluster.exists():
            _check_room(folder)
        for name in SECRETS:
            _keep_secret(state.secrets / name)
        _keep_demo_files(state.demo_files)
    except OSError as exc:
        raise CannotStart(_advice(folder, exc)) from exc
    return state


def _check_path(folder: Path) -> None:
    # Postgres reads a comma between two hosts, and a control character breaks every log.
    if "," in str(folder) or not str(folder).isprintable():
        raise CannotStart(
            f"The state folder {str(folder)!r} has a comma or an unprintable character in its"
            f" path: set {VARIABLE} to another."
        )
    too_long = len(os.fsencode(folder / SOCKET)) - SOCKET_BYTES
    if too_long > 0:
        raise CannotStart(
            f"The path of the state folder {folder} is {too_long} bytes too long for a socket:"
            f" set {VARIABLE} to a shorter one."
        )


def _check_owner(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise CannotStart(
            f"{folder} belongs to another user (uid {found.st_uid}): set {VARIABLE} to a folder of your own."
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        # A folder that is in use for something else is not ours to close: think of /tmp.
        if found.st_mode & stat.S_ISVTX or any(folder.iterdir()):
            raise CannotStart(
                f"{folder} is open to other users: set {VARIABLE} to a new folder,"
                f" or, if it holds nothing else, run: chmod 700 {folder}"
            )
        folder.chmod(0o700)


def _check_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES:
        raise CannotStart(
            f"Only {free // 1024**2} MB are free where {folder} is, and {FREE_BYTES // 1024**2} MB"
            f" are needed: free some, or set {VARIABLE} to another disk."
        )


def _keep_secret(path: Path) -> None:
    """Make the secret where it is missing. One that is there is never written again."""
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=path.parent, delete_on_close=False) as new:
            new.write(secrets.token_urlsafe(48).encode() + b"\n")
            new.flush()
            os.fsync(new.fileno())
            # A link, not a rename: it never replaces what another start made meanwhile.
            with contextlib.suppress(FileExistsError):
                os.link(new.name, path)
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise CannotStart(f"{path} is not a file of yours: put it back from a backup.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise CannotStart(f"{path} is open to other users: replace it if it leaked, else chmod 600.")
    if found.st_size < 32:
        raise CannotStart(
            f"{path} is damaged: put it back from a backup, or remove it to get a new one"
            " (signed-in people and connected hosts then sign in again)."
        )


def _keep_demo_files(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, text in DEMO_FILES.items():
        path = folder / name
        if not path.exists():
            path.write_text(text, encoding="utf-8")


def _advice(folder: Path, exc: OSError) -> str:
    said = exc.strerror or str(exc)
    place = exc.filename or str(folder)
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"No room left at {place}: free some, or set {VARIABLE} to another disk."
    if exc.errno in (errno.EEXIST, errno.ENOTDIR):
        return f"{place} is not a folder: set {VARIABLE} to another place."
    return f"{place} cannot be used ({said}): set {VARIABLE} to a folder that you can write to."


DEMO_FILES = {
    "old-report.txt": "A report that nobody needs any more. Safe to delete: it is made anew.\n",
    "notes draft.txt": "Notes for a talk that was held last year. Safe to delete.\n",
    "invoice-2019.csv": "number,amount\n1,10.00\n",
}

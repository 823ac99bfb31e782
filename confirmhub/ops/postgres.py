"""Our own Postgres: a cluster in the state folder, reached by a Unix socket and nothing else.

No port is opened. The socket lies in a folder that only its owner can enter, which is what makes
sign-in without a password acceptable. Root's cluster runs as an unprivileged account, since
Postgres refuses to run as root.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import quote

from confirmhub.ops import binaries, processes, roles
from confirmhub.ops.errors import CannotStart
from confirmhub.ops.processes import Account
from confirmhub.ops.roles import DATABASE, OWNER

ADMIN = "postgres"  # the superuser: makes the two roles, and does nothing else

START_WITHIN = 30.0  # seconds; a killed predecessor may take that long to be reaped
ACCOUNTS = ("postgres", "confirmhub")

ROOMY = "max_connections=300"  # several replicas at once, as the tests have them
# What a throw-away cluster may do without: it is never read again after a crash.
VOLATILE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class Cluster:
    """One data folder, and the server that this process runs on it."""

    def __init__(self, folder: Path, *, log: Path, options: Sequence[str] = ()) -> None:
        self.folder = folder
        self.socket = folder / "run" / ".s.PGSQL.5432"
        self._log = log
        self._options = options
        self._account = _account() if os.geteuid() == 0 else None
        self._programs = binaries.find()
        if self._account:
            self._programs = binaries.readable_copy(self._programs)
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def url(self, role: str, *, database: str = DATABASE) -> str:
        """Return the URL by which `role` reaches `database`."""
        return f"postgresql://{role}@/{database}?host={quote(str(self.socket.parent), safe='')}"

    def start(self) -> None:
        """Make the cluster if it is not there, start it, and make its roles.

        Raises:
            CannotStart: With what to do, in one line.
        """
        self._check_version()
        if not self.folder.exists():
            self._create()
        self._serve()
        roles.create(admin_url=self.url(ADMIN, database="postgres"))

    def restart(self) -> None:
        """Start the server again after it died. The data is there and was checked.

        Raises:
            CannotStart: It does not come back.
        """
        self._serve()

    def running(self) -> bool:
        """Return whether the server's process lives."""
        return self._process is not None and self._process.poll() is None

    def stop(self, *, at_once: bool = False, within: float = 4.0) -> None:
        """Stop the server: a checkpoint and a clean end, or at once, as if the power failed.

        What has not ended `within` so many seconds is killed, and recovers at the next start.
        """
        if self._process is not None:
            number = signal.SIGQUIT if at_once else signal.SIGINT  # "immediate", "fast"
            processes.stop(self._process, by=number, within=within)
            self._process = None

    def answers(self) -> bool:
        """Return whether a server accepts connections. A pid would not tell: it may be a zombie's."""
        names = f"user\0{ADMIN}\0database\0postgres\0\0".encode()
        packet = struct.pack("!ii", len(names) + 8, 196608) + names  # protocol 3.0
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(2)
            client.connect(str(self.socket))
            client.sendall(packet)
            return client.recv(1) == b"R"  # "E" while it starts up or shuts down
        return False

    def _check_version(self) -> None:
        number = binaries.version(self._programs)
        with contextlib.suppress(FileNotFoundError):
            made = (self.folder / "PG_VERSION").read_text(encoding="ascii").strip()
            if made != number.partition(".")[0]:
                raise CannotStart(
                    f"{self.folder} was made by PostgreSQL {made}, and {self._programs} is {number}:"
                    f" install PostgreSQL {made}, dump there, and load into a new state folder."
                )

    def _create(self) -> None:
        """Make the data folder under another name first: half of one must not look whole."""
        new = self.folder.with_name(f"{self.folder.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        self._give_away(new)
        with self._seen_by_account(new) as (data, passed):
            made = subprocess.run(  # noqa: S603 - a program that `find` found
                [
                    *(str(self._programs / "initdb"), "--pgdata", data, "--username", ADMIN),
                    *("--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"),
                    *(["--no-sync"] if self._options else []),
                ],
                cwd="/",
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                pass_fds=passed,
                user=self._account.uid if self._account else None,
                group=self._account.gid if self._account else None,
                extra_groups=[] if self._account else None,
            )
        if made.returncode:
            shutil.rmtree(new, ignore_errors=True)
            raise CannotStart(
                f"The database could not be made in {self.folder}: {_complaint(made.stderr)};"
                " is there room on the disk?"
            )
        (new / "run").mkdir(mode=0o700)
        self._give_away(new / "run")
        new.rename(self.folder)

    def _serve(self) -> None:
        deadline = time.monotonic() + START_WITHIN
        with self._log.open("ab") as log:
            self._process = self._spawn(log)
            while not self.answers():
                if time.monotonic() > deadline:
                    raise CannotStart(f"Postgres did not start: {self._reason()}; see {self._log}.")
                if self._process.poll() is None:
                    time.sleep(0.02)
                elif "lock file" in self._reason() or "shared memory" in self._reason():
                    # A predecessor that was killed is not gone yet, or nobody has reaped it.
                    time.sleep(0.2)
                    self._process = self._spawn(log)
                else:
                    raise CannotStart(f"Postgres did not start: {self._reason()}; see {self._log}.")

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        self._log_start = self._log.stat().st_size
        with self._seen_by_account(self.folder) as (data, passed):
            settings = (
                "listen_addresses=",
                f"unix_socket_directories={data}/run",
                "unix_socket_permissions=0700",
                "max_connections=100",
                "timezone=UTC",
                "log_timezone=UTC",
                # An error is logged without its statement and its row, which hold arguments.
                "log_min_error_statement=panic",
                "log_error_verbosity=terse",
                *self._options,
            )
            return processes.spawn(
                [
                    *(str(self._programs / "postgres"), "-D", data),
                    *(part for setting in settings for part in ("-c", setting)),
                ],
                output=log.fileno(),
                dies_by=signal.SIGQUIT if self._options else signal.SIGINT,
                cwd=Path("/"),
                env=_environment(),
                account=self._account,
                pass_fds=passed,
            )

    @contextlib.contextmanager
    def _seen_by_account(self, data: Path) -> Iterator[tuple[str, list[int]]]:
        """Yield the path by which the account reaches `data`, and the descriptors that it needs.

        The state folder is root's and closed, so the account cannot walk there. Instead it inherits the
        folder, opened, and this link leads to wherever that is.
        """
        if self._account is None:
            yield str(data), []
            return
        opened = os.open(data, os.O_PATH | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{opened}", [opened]
        finally:
            os.close(opened)

    def _give_away(self, path: Path) -> None:
        if self._account:
            os.chown(path, self._account.uid, self._account.gid)

    def _reason(self) -> str:
        """Return what the server complained of last, since it was started last."""
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            return _complaint(log.read(64 * 1024).decode(errors="replace"))


@contextlib.contextmanager
def temporary(*, durable: bool = False) -> Iterator[str]:
    """Run a throw-away cluster, and yield the URL of a role that may make databases and roles.

    It syncs to disk only where it is to be `durable`, and is gone afterwards. Call it in the main thread.
    """
    prefix = "confirmhub-pg-"
    _sweep(prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = (ROOMY,) if durable else (ROOMY, *VOLATILE)
        cluster = Cluster(folder / "pg", log=folder / "log", options=options)
        try:
            cluster.start()
            roles.let_create(admin_url=cluster.url(ADMIN, database="postgres"))
            yield cluster.url(OWNER)
        finally:
            cluster.stop(at_once=True)
            shutil.rmtree(folder, ignore_errors=True)


def _sweep(prefix: str) -> None:
    """Remove what a killed run left behind: nobody holds its lock."""
    for lock in Path(tempfile.gettempdir()).glob(f"{prefix}*/lock"):
        with contextlib.suppress(OSError), lock.open("r+") as held:
            folder = lock.parent
            if folder.lstat().st_uid == lock.stat().st_uid == os.geteuid() and not folder.is_symlink():
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


def _complaint(said: str) -> str:
    """Return the line of a program of Postgres's that says what went wrong."""
    marks = ("No space left", "FATAL:", "PANIC:", "could not", "error")
    lines = said.splitlines()
    for mark in marks:
        if found := [line.strip() for line in lines if mark in line]:
            return found[-1]
    return lines[-1].strip() if lines else "it says nothing"


def _account() -> Account:
    for name in ACCOUNTS:
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return Account(name, found.pw_uid, found.pw_gid)
    if sys.platform != "linux":
        raise CannotStart("Postgres does not run as root: start as an ordinary user.")
    try:
        subprocess.run(  # noqa: S603 - fixed words
            [
                *("useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent"),
                *("--shell", "/usr/sbin/nologin", ACCOUNTS[-1]),
            ],
            check=True,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError) as exc:
        raise CannotStart(
            "Postgres does not run as root, and an account for it could not be made:"
            " start as an ordinary user, or make the account 'confirmhub', or set DATABASE_URL."
        ) from exc
    found = pwd.getpwnam(ACCOUNTS[-1])
    return Account(found.pw_name, found.pw_uid, found.pw_gid)


def _environment() -> dict[str, str]:
    # No PG* variable of the user's may lead the server elsewhere, and none of their secrets
    # concerns it.
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}

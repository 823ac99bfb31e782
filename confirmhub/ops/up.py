"""`./hub up`: from nothing to a service that answers, and down again."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import json
import os
import pwd
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psycopg

from confirmhub.ops import checked, environment, logfiles, prepared, processes, roles, screen, state
from confirmhub.ops.environment import ROOT, Database
from confirmhub.ops.errors import AlreadyRuns, CannotStart
from confirmhub.ops.postgres import Cluster
from confirmhub.ops.state import State
from confirmhub.ops.supervisor import Child, Supervisor

READY_WITHIN = 120.0  # seconds, on a slow machine that starts for the first time
PREPARED_WITHIN = 600.0  # seconds; a migration of much data takes its time


def up(*, host: str, port: int) -> None:
    """Run the service until a signal ends it.

    Raises:
        CannotStart: With what to do, in one line.
    """
    home = state.prepare(folder=state.locate())
    # By the name that it answers to, for the demo and for `manage`.
    url = os.environ.get("PUBLIC_URL") or f"http://localhost:{port}"
    with held(home, url=url), listening(host=host, port=port) as sockets:
        logfiles.shorten(home.logs)
        with ending_by_signal():
            _serve(home, sockets, port=port)


def _whose(home: State) -> str:
    """Which data it takes, before anything is done to it: another user, or folder, has other data."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may run as a number that has no name
        user = f"user {os.geteuid()}"
    if environment.given_database():
        return f"starting on the database of DATABASE_URL, with the secrets in {home.folder}, as {user}"
    new = "" if home.cluster.exists() else "new "
    return f"starting on {new}data in {home.folder}, as {user}; set {state.VARIABLE} to use another folder"


def _serve(home: State, sockets: list[socket.socket], *, port: int) -> None:
    url = f"http://localhost:{port}"
    cluster = None
    if (database := environment.given_database()) is None:
        cluster = Cluster(home.cluster, log=home.logs / "postgres.log")
        database = environment.embedded_database(cluster)
    service = Supervisor(children=[], env={}, cluster=cluster, say=say)
    password: str | None = None
    shown = False
    try:
        checked.check(environment.for_service(home, database_url=database.service_url, public_url=url))
        say(_whose(home))
        if cluster:
            cluster.start()
        else:
            psycopg.connect(database.owner_url, connect_timeout=10).close()
        if not prepared.is_current(home, database):
            password = _prepare(home, database, public_url=url)
            prepared.remember(home, database)
        if cluster:
            prepared.forget_heartbeats(database)
            # Tables that authors of tools have made since belong to the owner too.
            roles.grant(owner_url=database.owner_url, service=database.service_role)
        service.env = environment.for_service(home, database_url=database.service_url, public_url=url)
        service.children = _children(home, sockets)
        service.run_until(lambda: _healthy(port), within=READY_WITHIN)
        sys.stdout.write(screen.ready(url=service.env["PUBLIC_URL"], password=password, state=home))
        sys.stdout.flush()
        shown = True
        service.run()
    except KeyboardInterrupt:
        say("stopping")
    except psycopg.Error as exc:
        raise CannotStart(f"The database cannot be used: {' '.join(str(exc).split())}") from exc
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # an impatient second Ctrl-C must not leave half of it
        if password and not shown:
            # It is kept nowhere, so it would be lost.
            say(screen.sign_in(password))
        service.stop()


def _children(home: State, sockets: list[socket.socket]) -> list[Child]:
    numbers = [listener.fileno() for listener in sockets]
    web = ["confirmhub.ops.web", *map(str, numbers)]
    celery = ["celery", "-A", "confirmhub.celery", "--quiet"]
    # One worker a host: none to compare clocks or gossip with.
    alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return [
        Child("web", web, home.logs / "web.log", pass_fds=numbers),
        Child("worker", [*celery, "worker", *alone], home.logs / "worker.log"),
        Child("beat", [*celery, "beat", "--pidfile="], home.logs / "beat.log"),
    ]


def _prepare(home: State, database: Database, *, public_url: str) -> str | None:
    """Migrate and so on, as the owner. Returns the first administrator's password, if just made."""
    env = environment.for_service(home, database_url=database.owner_url, public_url=public_url)
    env["CONFIRMHUB_SERVICE_ROLE"] = database.service_role
    log_path = home.logs / "prepare.log"
    reads, writes = os.pipe()
    with os.fdopen(reads, encoding="utf-8") as report, log_path.open("wb") as log:
        try:
            process = processes.spawn(
                [sys.executable, "-m", "confirmhub.ops.prepare", str(writes)],
                output=log.fileno(),
                dies_by=signal.SIGKILL,
                cwd=ROOT,
                env=env,
                pass_fds=[writes],
            )
        finally:
            os.close(writes)
        try:
            said = report.read()  # until it ends
            code = process.wait(PREPARED_WITHIN)
        finally:
            processes.stop(process, by=signal.SIGTERM, within=1)
    if code:
        last = checked.last_line(log_path.read_text("utf-8", errors="replace"))
        if code == checked.MISCONFIGURED:
            raise CannotStart(last)
        raise CannotStart(f"The database could not be made ready: {last} (all of it: {log_path}).")
    password: str | None = json.loads(said)["password"]
    return password


@contextlib.contextmanager
def held(home: State, *, url: str) -> Iterator[None]:
    """Keep every other start off this data. The kernel lets go when this process ends.

    Raises:
        AlreadyRuns: Another one holds it.
    """
    with (home.folder / "lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            lock.seek(0)
            holder = lock.read(200).strip() or "another command"
            raise AlreadyRuns(
                f"it already runs on {home.folder} ({holder}):"
                f" use that one, stop it, or set {state.VARIABLE} to another folder.",
                url=holder.partition(",")[0] if holder.startswith("http") else None,
            ) from exc
        lock.truncate(0)
        lock.write(f"{url}, process {os.getpid()}\n")
        lock.flush()
        try:
            yield
        finally:
            lock.truncate(0)


def serving_at(folder: Path) -> str | None:
    """Return where the `up` on this folder serves, as far as it says; one that was killed still says so."""
    try:
        holder = (folder / "lock").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return holder.partition(",")[0] if holder.startswith("http") else None


@contextlib.contextmanager
def listening(*, host: str, port: int) -> Iterator[list[socket.socket]]:
    """Open the port, on both loopback addresses unless another address was asked for.

    Raises:
        CannotStart: It is taken, or cannot be had.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_listen(host or "127.0.0.1", port))]
        if not host:
            # "localhost" is this address too, where the machine has it. Somebody else's there would be
            # taken for us, so it must be ours or nobody's.
            try:
                sockets.append(stack.enter_context(_bind("::1", port)))
            except OSError as exc:
                if exc.errno == errno.EADDRINUSE:
                    raise _busy(port) from exc
        yield sockets


def _listen(host: str, port: int) -> socket.socket:
    try:
        return _bind(host, port)
    except OSError as exc:
        if isinstance(exc, PermissionError):
            raise CannotStart(f"Port {port} needs root: choose one above 1023 with --port.") from exc
        if isinstance(exc, socket.gaierror) or "assign" in str(exc):
            raise CannotStart(f"{host} is no address of this machine: choose another --host.") from exc
        raise _busy(port) from exc


def _busy(port: int) -> CannotStart:
    other = port + 1 if port < 65535 else 8000
    return CannotStart(f"Port {port} is in use: stop what uses it, or choose another with --port {other}.")


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(256)
    except BaseException:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def ending_by_signal() -> Iterator[None]:
    """Turn the signals that end a program into KeyboardInterrupt, so that `finally` runs."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Under nohup the end of the terminal is to change nothing.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    yield


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/healthz", headers={"Host": f"localhost:{port}"})
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def say(text: str) -> None:
    """Tell the person at the terminal."""
    sys.stderr.write(f"confirmhub: {text}\n")

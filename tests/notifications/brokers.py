"""Real brokers on free ports of this machine, in folders that go."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

UP_WITHIN = 60.0  # seconds; RabbitMQ on a busy machine takes its time


def need(program: str, package: str) -> str:
    """The path of a program. Without it the test is skipped; in CI, it fails."""
    # Debian's own start script of RabbitMQ changes to another user.
    path = shutil.which(program, path=f"/usr/lib/rabbitmq/bin:{os.environ['PATH']}:/usr/sbin")
    if path is None:
        message = f"no {program} (Debian: apt-get install -y {package})"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path


@contextmanager
def memory(_folder: Path) -> Iterator[str]:
    """The embedded broker, which needs no server."""
    yield "memory://localhost"


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """Redis, which keeps nothing on disk."""
    port = free_port()
    command = [need("redis-server", "redis-server"), "--port", str(port), "--bind", "127.0.0.1"]
    command += ["--save", "", "--appendonly", "no", "--dir", str(folder)]
    with running(command, folder, port=port):
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def rabbitmq(folder: Path) -> Iterator[str]:
    """RabbitMQ, with the port mapper of its own."""
    server, mapper = need("rabbitmq-server", "rabbitmq-server"), need("epmd", "erlang-base")
    port, mapped, between = free_port(), free_port(), free_port()
    (folder / "plugins").write_text("[].\n")
    (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
    env = {
        "HOME": str(folder),  # of its cookie
        "ERL_EPMD_PORT": str(mapped),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"test{port}@localhost",
        "RABBITMQ_DIST_PORT": str(between),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        # Two schedulers that do not spin: other tests run beside it.
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none",
    }
    with (
        running([mapper, "-port", str(mapped)], folder, port=mapped, env=env),
        running([server], folder, port=port, env=env),
    ):
        yield f"amqp://guest:guest@127.0.0.1:{port}//"


@contextmanager
def running(
    command: list[str], folder: Path, *, port: int, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server until the end of the block, once it listens."""
    with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | (env or {}),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until_it_listens(port, process)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until_it_listens(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + UP_WITHIN
    while True:
        assert process.poll() is None, f"{process.args} ended with {process.returncode}"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        assert time.monotonic() < deadline, f"{process.args} does not listen"
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])

"""Fixtures for the supervisor and for what it runs."""

from __future__ import annotations

import json
import logging
import queue
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from confirmhub import logs
from tests.bridge.serving import run
from tests.ops.service import Service, short_folder
from tests.ops.wiring import Echo

type Up = Callable[..., Service]


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder with a short path."""
    made = short_folder()
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def kept() -> Iterator[Path]:
    """A folder that stays: whoever starts on it first makes the data, which takes as long as all the rest."""
    made = short_folder()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def new(kept: Path, folder: Path) -> Path:
    """A folder without data, and the one that stays if it can be."""
    return folder if (kept / "state").exists() else kept


@pytest.fixture
def up(folder: Path) -> Iterator[Up]:
    """Start `up` on a state folder of this test. What still runs afterwards is killed."""
    with starting(folder) as start:
        yield start


@pytest.fixture
def up_new(new: Path) -> Iterator[Up]:
    """The same, for a first start."""
    with starting(new) as start:
        yield start


@pytest.fixture
def up_kept(kept: Path) -> Iterator[Up]:
    """The same on the folder that stays, for what is to be seen at any start."""
    with starting(kept) as start:
        yield start


@contextmanager
def starting(folder: Path) -> Iterator[Up]:
    started: list[Service] = []

    def start(*arguments: str, port: int | None = None, settings: dict[str, str] | None = None) -> Service:
        started.append(Service(folder / "state", *arguments, port=port, settings=settings))
        return started[-1]

    try:
        yield start
    finally:
        for service in started:
            service.end()


class Log(logging.Handler):
    """What the processes write with LOG_FORMAT=json."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logs.JsonFormatter())
        self.addFilter(logs.Discreet())
        self.lines: list[str] = []
        self._new: queue.Queue[str] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        self.lines.append(line)
        self._new.put(line)

    def of_next_request(self) -> list[dict[str, Any]]:
        """The records since the last look, up to that which says how the request was answered."""
        found = []
        while not found or not found[-1]["logger"].endswith(".access"):
            found.append(json.loads(self._new.get(timeout=20)))
        return found


@pytest.fixture
def log() -> Iterator[Log]:
    """All that is logged while the test runs, our own debug lines, too; but not what its client says."""
    found = Log()
    levels = {"": "INFO", "confirmhub": "DEBUG", "mcp_bridge": "DEBUG", "httpx2": "WARNING"}
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().addHandler(found)
    yield found
    logging.getLogger().removeHandler(found)
    for name, number in before.items():
        logging.getLogger(name).setLevel(number)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Echo, int]]:
    """An application that echoes, served as the product is, and its port."""
    handlers = logging.root.handlers[:]
    echo = Echo()
    config = echo.config
    config.lifespan = "off"
    config.log_config = None
    server = uvicorn.Server(config)
    ready = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Its connections have it too: what nobody takes is soon more than the kernel keeps for them.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        thread = threading.Thread(target=run, args=(server, listener, ready))
        thread.start()
        assert ready.wait(20)
        yield echo, listener.getsockname()[1]
        server.should_exit = True
        thread.join(20)
    logging.root.handlers[:] = handlers


@pytest.fixture
def echo(served: tuple[Echo, int]) -> Iterator[Echo]:
    found, _ = served
    found.asked.clear()
    found.go_on.clear()
    found.ended.clear()
    yield found
    found.go_on.set()


@pytest.fixture
def connection(served: tuple[Echo, int], echo: Echo) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", served[1]), timeout=20) as opened:
        yield opened

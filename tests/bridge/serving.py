"""The whole application under uvicorn, in a thread of the test, on a free port."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import uvicorn
from django.db import connection as database_connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.test import override_settings
from starlette.types import ASGIApp

from confirmhub.oauth import defaults as oauth
from confirmhub.ops import web

BALANCER = "localhost:1"  # what several replicas are called together; their own ports do not matter


@contextlib.contextmanager
def served(*, within: Callable[[ASGIApp], ASGIApp] = lambda app: app) -> Iterator[str]:
    """Serve it, and give its public URL. `within` wraps the application in another."""
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as static:
        url = f"http://localhost:{listener.getsockname()[1]}"
        resource = f"{url}/mcp"
        with override_settings(
            PUBLIC_URL=url,
            ISSUER=url,
            MCP_RESOURCE=resource,
            OAUTH2_PROVIDER=oauth.provider(issuer=url, resource=resource),
            CSRF_TRUSTED_ORIGINS=[url],
            ALLOWED_HOSTS=["localhost"],
            STATIC_ROOT=static,  # whitenoise warns of one that is missing
        ):
            from confirmhub.asgi import create
            from confirmhub.ops.stopping import Server

            with override_settings(LOGGING=None):  # pytest listens to the loggers as they are
                server = Server(web.config(within(create())))
            ready = threading.Event()
            thread = threading.Thread(target=run, args=(server, listener, ready))
            made: list[BaseDatabaseWrapper] = []

            def remember(connection: BaseDatabaseWrapper, **_: object) -> None:
                if threading.current_thread() is not threading.main_thread():
                    made.append(connection)

            connection_created.connect(remember)
            thread.start()
            try:
                assert ready.wait(timeout=20), "the server did not start"
                yield url
            finally:
                server.should_exit = True
                thread.join(timeout=20)
                assert not thread.is_alive(), "the server did not stop"
                connection_created.disconnect(remember)
                # Django's threads keep theirs, and the database is dropped before this process ends.
                for connection in made:
                    connection.inc_thread_sharing()
                    connection.close()


def run(server: uvicorn.Server, listener: socket.socket, ready: threading.Event) -> None:
    startup = server.startup

    async def told(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets=sockets)
        ready.set()

    server.startup = told
    server.run(sockets=[listener])


@contextlib.contextmanager
def replica(*, keys: list[str], root: Path, tools: str = "mcp_bridge.tools.files") -> Iterator[str]:
    """A process that serves under the name `BALANCER`, at the address that is given."""
    database = database_connection.settings_dict
    environment = os.environ | {
        "DATABASE_URL": f"postgresql://{database['USER']}@/{database['NAME']}?host={database['HOST']}",
        "PUBLIC_URL": f"http://{BALANCER}",
        "SEALING_KEYS": "\n".join(keys),
        "FILE_ROOTS": str(root),
        "GUARDED_TOOLS": tools,
    }
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        command = [sys.executable, "-m", "confirmhub.ops.web", str(listener.fileno())]
        with subprocess.Popen(command, env=environment, pass_fds=[listener.fileno()]) as process:
            listener.close()  # or calls would wait in its queue for a process that has died
            try:
                yield _answering(address, process)
            finally:
                process.kill()


def _answering(address: str, process: subprocess.Popen[bytes]) -> str:
    """The address, once it is served."""
    while process.poll() is None:
        # The socket takes connections before the process serves it: this waits for its first answer.
        with contextlib.suppress(httpx2.TransportError):
            httpx2.get(f"{address}/healthz", timeout=60)
            return address
    raise AssertionError(f"the replica did not start: {process.returncode}")

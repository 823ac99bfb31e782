"""The whole application under uvicorn, in a thread of the test, on a free port."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from django.db import connection as database_connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.test import override_settings
from starlette.types import ASGIApp

from confirmhub.oauth import defaults as oauth

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

            server = uvicorn.Server(uvicorn.Config(within(create()), log_config=None, lifespan="on"))
            ready = threading.Event()
            thread = threading.Thread(target=_run, args=(server, listener, ready))
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


def _run(server: uvicorn.Server, listener: socket.socket, ready: threading.Event) -> None:
    startup = server.startup

    async def told(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets=sockets)
        ready.set()

    server.startup = told  # type: ignore[method-assign]
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
    command = [sys.executable, "-m", "uvicorn", "confirmhub.asgi:application", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            found = (re.search(r"running on (http://[\d.:]+)", line) for line in process.stderr)
            yield next(match[1] for match in found if match)
        finally:
            process.kill()

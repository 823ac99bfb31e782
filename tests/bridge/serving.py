"""The whole application under uvicorn, in a thread of the test, on a free port."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator

import uvicorn
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.test import override_settings

from confirmhub.oauth import defaults as oauth


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Serve it, and give its public URL."""
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

            server = uvicorn.Server(uvicorn.Config(create(), log_config=None, lifespan="on"))
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

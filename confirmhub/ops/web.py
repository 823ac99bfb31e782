"""The web process: `python -m confirmhub.ops.web FD...` serves on listening sockets it was given.

The supervisor holds the sockets, so that a restart of this process loses no connection, and a
busy port is noticed before anything else starts.
"""

from __future__ import annotations

import socket
import sys

import django
import uvicorn

from confirmhub.ops import misconfigured

# What is still open after this many seconds is cut off; hosts that wait for an answer ask again.
GRACE = 2


def main() -> None:
    """Serve until told to stop."""
    with misconfigured.telling():
        django.setup()
        misconfigured.load_tools()
        from confirmhub.asgi import application  # noqa: PLC0415 - it loads the settings and the tools
    config = uvicorn.Config(
        application,
        lifespan="on",
        ws="none",
        # The address that axes counts sign-ins by must not come from a header that anyone can send.
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    sockets = [socket.socket(fileno=int(number)) for number in sys.argv[1:]]
    server = uvicorn.Server(config)
    server.run(sockets=sockets)
    if not server.started:
        sys.exit(3)  # the lifespan failed; it has logged why


if __name__ == "__main__":
    main()

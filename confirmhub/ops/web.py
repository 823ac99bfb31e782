"""The web process: `python -m confirmhub.ops.web FD|HOST:PORT ...` serves on sockets or addresses.

The supervisor gives the numbers of listening sockets, which it holds, so that a restart of this process
loses no connection, and a busy port is noticed before anything else starts. A replica gets its address.
"""

from __future__ import annotations

import gc
import os
import resource
import socket
import sys
from collections.abc import Callable
from typing import Any

import django
import uvicorn
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from confirmhub.ops import misconfigured, wire

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "confirmhub.settings")

# What is still open after this many seconds is cut off; hosts that wait for an answer ask again.
GRACE = 2

YOUNG = 50_000  # objects that are new before the collector looks at them; a request makes thousands

# Most systems start a process with 1,024, for programs older than epoll, and allow far more.
MAX_DESCRIPTORS = 65_536


def config(app: Callable[..., Any]) -> uvicorn.Config:
    """How the product is served."""
    return uvicorn.Config(
        app,
        http=wire.Protocol,
        access_log=False,  # `watch` says more, for less
        log_config=settings.LOGGING,
        lifespan="on",
        ws="none",
        # The address that axes counts sign-ins by must not come from a header that anyone can send.
        proxy_headers=bool(settings.TRUSTED_PROXIES),
        forwarded_allow_ips=settings.TRUSTED_PROXIES,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )


def main() -> None:
    """Serve until told to stop."""
    raise_descriptor_limit()
    with misconfigured.telling():
        sockets = [_listening(where) for where in sys.argv[1:]]
        django.setup()
        misconfigured.load_tools()
        from confirmhub.asgi import application  # noqa: PLC0415 - loads the settings, the tools and the models
        from confirmhub.ops.stopping import Server  # noqa: PLC0415 - the same

        server = Server(config(application))
    # What is loaded stays for good: a full collection, which everybody waits for, need not look at it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
    server.run(sockets=sockets)
    if not server.started:
        sys.exit(3)  # the lifespan failed; it has logged why


def raise_descriptor_limit() -> None:
    """Let this process open as many files as it may: each host that waits for a person holds one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _listening(where: str) -> socket.socket:
    if where.isdigit():
        return socket.socket(fileno=int(where))
    host, _, port = where.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), int(port)), family=family)
    except (OSError, ValueError, OverflowError):
        raise ImproperlyConfigured(
            f"{where} cannot be listened on: give a free address of this machine, such as 127.0.0.1:8001."
        ) from None


if __name__ == "__main__":
    main()

"""One ASGI application: the bridge and the async routes first, Django through WSGI behind them.

Django's own ASGI handler makes two threads a request; behind a2wsgi it runs in a fixed pool, whose threads
keep their database connections.
"""

# ruff: noqa: E402 - Django loads the apps first, which the imports after it need

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from a2wsgi import WSGIMiddleware
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "confirmhub.settings")
django = get_wsgi_application()  # loads the apps

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from confirmhub.aap import routes as aap
from confirmhub.api import hot
from confirmhub.confirmations import redeemer, waiting
from confirmhub.ops.health import healthz, livez
from confirmhub.ops.inlet import Gate, Inlet
from confirmhub.ops.metrics import metrics
from confirmhub.ops.proxies import Addressed
from confirmhub.ops.stopping import Ending
from confirmhub.ops.watch import Watched, start_tracing
from confirmhub.pages import live
from mcp_bridge.app import build

THREADS = 8  # one database connection each


def create() -> Starlette:
    """Build an application that can be started once."""
    bridge = build()
    # Each of the three libraries types the same interface in its own words.
    # The queue of an answer has no end: a thread must not wait for who reads slowly, and pages are small.
    pages = WSGIMiddleware(cast(Any, django), workers=THREADS, send_queue_size=0)
    probes = [Route("/healthz", healthz), Route("/livez", livez), Route("/metrics", metrics)]
    # The bridge checks the name itself, in the form that its protocol wants.
    unnamed = [route.path for route in (*probes, *bridge.routes) if isinstance(route, Route)]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if tracing := start_tracing():
                stack.callback(tracing.shutdown)  # sends what is left
            await stack.enter_async_context(waiting.listening())
            # Around the bridge, whose tasks wait for their redemptions and reports until it has ended.
            await stack.enter_async_context(redeemer.running())
            await stack.enter_async_context(bridge.running())
            await stack.enter_async_context(live.running())
            await stack.enter_async_context(hot.running())
            await stack.enter_async_context(aap.running())
            yield

    return Starlette(
        routes=[
            *hot.routes(inlet=Inlet),  # first: thousands a second come here
            *bridge.routes,
            *live.routes,
            *aap.routes(inlet=Inlet),
            *probes,
            Mount("/", Inlet(cast(ASGIApp, pages))),
        ],
        middleware=[
            *(Middleware(Watched), Middleware(Addressed), Middleware(Ending)),
            Middleware(Gate, unnamed=unnamed),
        ],
        lifespan=lifespan,
    )


application = create()

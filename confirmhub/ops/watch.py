"""What is known of each request from outside of it: an id, a line in the log, figures, a trace."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from django.conf import settings
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import Counter, Histogram
from starlette.types import Message, Receive, Scope, Send

from confirmhub import logs
from confirmhub.ops.layers import Layer

_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")
# Where a request goes, in a few words: a label with an id in it would be a new series for each.
_PLACES = {
    "/mcp": "bridge",
    "/live": "live",
    "/healthz": "health",
    "/livez": "health",
    "/metrics": "health",
}
_PLACES_BELOW = {
    "/api/": "api",
    "/aap/": "api",
    "/oauth/": "oauth",
    "/.well-known/": "oauth",
    "/admin/": "review",
    "/static/": "static",
}
REQUESTS = Counter("confirmhub_requests", "Requests that were answered", ["place", "method", "status"])
SECONDS = Histogram(
    "confirmhub_request_seconds",
    "How long requests took; those of the bridge and the API may wait for a person",
    ["place"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
_LINE = '%s "%s %s" %d in %d ms'
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_tracer = trace.get_tracer("confirmhub")
access = logging.getLogger("confirmhub.access")


def start_tracing() -> TracerProvider | None:
    """Send traces to OTEL_EXPORTER_OTLP_ENDPOINT, where it is set; the MCP SDK's own spans come with ours."""
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        return None
    # What sends them takes a tenth of the start, and most who start it have nowhere to send them.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider(resource=Resource.create({"service.name": "confirmhub"}))
    # It reads the endpoint, and the other settings of its standard, from the environment.
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


class Watched(Layer):
    """The outermost layer. Nothing that it writes down has a query, token or body in it."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        id_ = _id(scope)
        place = place_of(scope["path"])
        method = scope["method"] if scope["method"] in _METHODS else "other"
        status = 500
        began = time.monotonic()

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], (b"x-request-id", id_.encode())]}
            await send(message)

        token = logs.request_id.set(id_)
        try:
            with _span(scope, name=f"{method} {place}", id_=id_) as span:
                try:
                    await self.app(scope, receive, answer)
                finally:
                    span.set_attribute("http.response.status_code", status)
        finally:
            seconds = time.monotonic() - began
            _tell(scope, status=status, seconds=seconds)
            logs.request_id.reset(token)
            _requests(place, method, status).inc()
            _seconds(place).observe(seconds)


def _tell(scope: Scope, *, status: int, seconds: float) -> None:
    """Log it. By a record made here: `Logger.info` would look for where in our code this is, each time."""
    if access.isEnabledFor(logging.INFO):
        host, _ = scope["client"] or ("-", 0)
        said = (host, scope["method"], scope["path"], status, seconds * 1_000)
        access.handle(logging.LogRecord(access.name, logging.INFO, __file__, 0, _LINE, said, None))


# Looking a child up takes longer than counting does; there are few.
@cache
def _requests(place: str, method: str, status: int) -> Counter:
    return REQUESTS.labels(place, method, status)


@cache
def _seconds(place: str) -> Histogram:
    return SECONDS.labels(place)


def place_of(path: str) -> str:
    """Where a request goes, as one of a few words."""
    if path in _PLACES:
        return _PLACES[path]
    return next((place for start, place in _PLACES_BELOW.items() if path.startswith(start)), "pages")


def _id(scope: Scope) -> str:
    """The proxy's id, where there is one to be trusted, so that its log and ours tell of one request."""
    if settings.SECURE_PROXY_SSL_HEADER:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _ID.fullmatch(value):
                return str(value.decode("ascii"))
    return str(uuid.uuid4())


@contextmanager
def _span(scope: Scope, *, name: str, id_: str) -> Iterator[trace.Span]:
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        yield trace.INVALID_SPAN
        return
    headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
    with _tracer.start_as_current_span(
        name,
        context=propagate.extract(headers),
        kind=trace.SpanKind.SERVER,
        attributes={"http.request.method": scope["method"], "confirmhub.request_id": id_},
    ) as span:
        yield span

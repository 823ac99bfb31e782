"""`GET /metrics`: figures for Prometheus, for who holds the token that the setting names."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

from django.conf import settings
from django.db import Error, connection
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

log = logging.getLogger(__name__)

# Each is answered by an index that holds little more than the rows it counts.
_WAITING = "FROM confirmations_confirmation WHERE status = 'pending' AND decide_by > now()"
_UNSENT = "FROM confirmations_notice WHERE sent_at IS NULL AND given_up_at IS NULL AND withdrawn_at IS NULL"
FIGURES = {
    "confirmhub_waiting": ("Confirmations that wait for a person", f"SELECT count(*) {_WAITING}"),
    "confirmhub_oldest_waiting_seconds": (
        "How long the oldest of them has waited",
        f"SELECT coalesce(extract(epoch FROM now() - min(requested_at)), 0) {_WAITING}",  # noqa: S608 - ours
    ),
    "confirmhub_notices_due": (
        "Notices that should have been sent and were not yet",
        f"SELECT count(*) {_UNSENT} AND due_at <= now()",
    ),
    "confirmhub_halts": (
        "Stops of redemptions that are in force",
        "SELECT count(*) FROM confirmations_halt WHERE lifted_at IS NULL",
    ),
}
PATIENCE = 5.0  # seconds that the database has to answer

# One thread: whoever asks again and again of a database that hangs takes no other of this process.
_counter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metrics")


class _Rows(Collector):
    """What the rows say at the moment of asking. The same from every replica."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            with connection.cursor() as cursor:
                for name, (words, query) in FIGURES.items():
                    cursor.execute(query)
                    [value] = cursor.fetchone() or [0]
                    yield GaugeMetricFamily(name, words, value=float(value))
                yield GaugeMetricFamily("confirmhub_database_up", "Whether the database answers", value=1)
        except Error as exc:
            log.warning("The figures of the database are missing: %s", exc)
            yield GaugeMetricFamily("confirmhub_database_up", "Whether the database answers", value=0)
        finally:
            connection.close()  # who asks does so every 15 seconds or so

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing, so that registering asks the database nothing."""
        return []


REGISTRY.register(_Rows())


async def metrics(request: Request) -> Response:
    """Answer with the figures, or, where no token is set, as if there were none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if not settings.METRICS_TOKEN:
        return PlainTextResponse(
            "Set METRICS_TOKEN to have figures here.\n", status_code=HTTPStatus.NOT_FOUND
        )
    if scheme.lower() != "bearer" or not hmac.compare_digest(
        token.encode("utf-8", "replace"), settings.METRICS_TOKEN.encode()
    ):
        return PlainTextResponse(
            "Send the token of METRICS_TOKEN as a bearer.\n",
            status_code=HTTPStatus.UNAUTHORIZED,
            headers={"WWW-Authenticate": "Bearer"},
        )
    try:
        counted = asyncio.get_running_loop().run_in_executor(_counter, generate_latest, REGISTRY)
        body = await asyncio.wait_for(counted, PATIENCE)
    except TimeoutError:
        log.warning("The figures were not counted within %s s: no answer comes from the database.", PATIENCE)
        return PlainTextResponse(
            "The database does not answer. Ask again later.\n", status_code=HTTPStatus.SERVICE_UNAVAILABLE
        )
    return Response(body, media_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})

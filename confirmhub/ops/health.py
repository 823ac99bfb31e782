"""Whether every part is up: the database, its migrations, the Celery worker and beat, the broker, the keys.

`GET /healthz` answers 200 when all are and 503 otherwise, with each part by name. It tells
nothing else, since anybody may ask.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from http import HTTPStatus

from django.conf import settings
from django.db import Error, connection
from django.db.migrations.loader import MigrationLoader
from kombu import Connection
from kombu.exceptions import OperationalError
from mcp.server.mcpserver import RequestStateSecurity
from mcp.server.request_state import InvalidRequestState
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

PARTS = ("database", "migrations", "worker", "beat", "broker", "sealing_keys")
FRESH = 30  # seconds; a process that was silent for longer counts as missing
KEPT = 1.0  # seconds for which an answer is given again, so that asking costs the database nothing
PATIENCE = 3.0  # seconds that a check may take
BROKER_PATIENCE = 1  # seconds of them that the broker has to answer
_SAMPLE = b"sealed and opened again"

# One thread: one connection, and a database that hangs can hold no more than this.
_checker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="healthz")
_asked: tuple[float, Future[dict[str, bool]] | None] = (float("-inf"), None)

log = logging.getLogger(__name__)


async def healthz(_request: Request) -> Response:
    """Answer whether all parts are ready. Never blocks the event loop."""
    parts = await _parts()
    ready = all(parts.values())
    missing = [part for part in PARTS if not parts[part]]
    return JSONResponse(
        {"ready": ready, "missing": missing, "parts": parts},
        status_code=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
        headers={"Cache-Control": "no-store"},
    )


async def livez(_request: Request) -> Response:
    """Answer that this process serves, whatever else is down: what restarts processes asks this."""
    return JSONResponse({"alive": True}, headers={"Cache-Control": "no-store"})


async def _parts() -> dict[str, bool]:
    global _asked  # noqa: PLW0603 - the newest check, replaced as a whole
    at, check_running = _asked
    if check_running is None or (check_running.done() and time.monotonic() - at > KEPT):
        check_running = _checker.submit(check)
        _asked = (time.monotonic(), check_running)
    # Shielded: others may wait for the same check.
    answer = asyncio.shield(asyncio.wrap_future(check_running))
    try:
        return await asyncio.wait_for(answer, PATIENCE)
    except TimeoutError:
        log.warning("The health check was not done in %s s: no answer comes from the database.", PATIENCE)
        return dict.fromkeys(PARTS, False)


def check() -> dict[str, bool]:
    """Return for each part whether it is ready, asking the database now."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass('ops_heartbeat') IS NOT NULL")
            if cursor.fetchone() != (True,):
                return dict.fromkeys(PARTS, False) | {"database": True}
            cursor.execute("SELECT app, name FROM django_migrations")
            migrated = _migrations() <= set(cursor.fetchall())
            cursor.execute(
                "SELECT name FROM ops_heartbeat WHERE at > clock_timestamp() - make_interval(secs => %s)",
                [FRESH],
            )
            alive = {name for (name,) in cursor.fetchall()}
    except Error as exc:
        # Closed, so that the next check connects anew: Postgres may have been restarted.
        connection.close()
        log.warning("The health check failed: %s", exc)
        return dict.fromkeys(PARTS, False)
    return {
        "database": True,
        "migrations": migrated,
        "worker": "worker" in alive,
        "beat": "beat" in alive,
        "broker": _broker_answers(),
        "sealing_keys": _keys_open_what_they_seal(),
    }


def _broker_answers() -> bool:
    """Whether Celery's broker can be reached. The embedded one lives in the worker, and with it."""
    if settings.CELERY_BROKER_URL.startswith("memory:"):
        return True
    options = {}
    if settings.CELERY_BROKER_URL.startswith("redis"):
        # Its transport does not heed `connect_timeout`, and would wait for minutes.
        options = {"socket_connect_timeout": BROKER_PATIENCE, "socket_timeout": BROKER_PATIENCE}
    try:
        with Connection(
            settings.CELERY_BROKER_URL, connect_timeout=BROKER_PATIENCE, transport_options=options
        ) as broker:
            broker.ensure_connection(
                max_retries=1, interval_start=0, interval_step=0, timeout=BROKER_PATIENCE
            )
    except OperationalError as exc:
        log.warning("The broker does not answer: %s", exc)
        return False
    return True


def _keys_open_what_they_seal() -> bool:
    """Whether a question's state that goes out with a host can be read when it comes back."""
    try:
        codec = RequestStateSecurity(keys=settings.SEALING_KEYS).codec
        return codec.unseal(codec.seal(_SAMPLE)) == _SAMPLE
    except (ValueError, InvalidRequestState) as exc:
        log.warning("The sealing keys do not work: %s", exc)
        return False


@cache
def _migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).graph.nodes)

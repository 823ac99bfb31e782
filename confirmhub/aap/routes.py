"""The protocol's routes, under /aap. Waiting holds no thread, so they stand beside Django's."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from confirmhub.aap import calls, refusals, wire
from confirmhub.aap.calls import Call, Reply
from confirmhub.aap.refusals import Malformed, Refused, TooMany
from confirmhub.confirmations import waiting
from confirmhub.confirmations.errors import ASK_AFTER, SOON, Busy, NotFound
from confirmhub.confirmations.threads import Threads
from confirmhub.oauth import bearer
from confirmhub.oauth.bearer import Bearer
from confirmhub.oauth.scopes import expand

PREFIX = "/aap"
THREADS = 2  # one database connection each
MOST_WAITING = 1_000  # in one process
MOST_OF_ONE = 200  # of them of one caller
NOBODY = uuid.UUID(int=0)  # the id where a path has none

type Operation = Callable[[Bearer, Call], Reply]


class _Running:
    def __init__(self) -> None:
        self.threads = Threads(count=THREADS, name="aap")
        self.places = waiting.Places()


_running: _Running | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Serve the routes for as long as the block runs, inside of `waiting.listening`."""
    global _running  # noqa: PLW0603 - one a process, set and unset by its lifespan alone
    mine = _running = _Running()
    try:
        yield
    finally:
        _running = None
        await mine.threads.close()


def routes(*, inlet: Callable[[ASGIApp], ASGIApp]) -> list[BaseRoute]:
    """The routes. `inlet` bounds what a request may send."""
    ask = {"POST": ("confirm:request", calls.create)}
    one = {"GET": ("confirm:read", calls.read), "DELETE": ("confirm:request", calls.cancel)}
    spend = {"POST": ("confirm:redeem", calls.consume)}
    tell = {"POST": ("confirm:redeem", calls.report)}
    methods = ("POST", "GET", "PATCH", "DELETE")
    instances = dict.fromkeys(methods, ("confirm:read", calls.manage_instances))
    paths: dict[str, Mapping[str, tuple[str, Operation]]] = {
        "/v1/requests": ask,
        "/v1/requests/{id}": one,
        "/v1/requests/{id}/consume": spend,
        "/v1/requests/{id}/outcome": tell,
        "/v1/instances": instances,
        "/v1/instances/{id}": instances,
    }
    return [
        *(Route(f"{PREFIX}{path}", inlet(_Endpoint(operations))) for path, operations in paths.items()),
        Mount(PREFIX, _nothing),
    ]


class _Endpoint:
    """One path: for each of its methods the scope that it needs, and what it does."""

    def __init__(self, operations: Mapping[str, tuple[str, Operation]]) -> None:
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(Request(scope, receive))
        except Exception as exc:  # noqa: BLE001 - the table answers them all, and logs what it does not know
            answer = refusals.answer(exc)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method not in self._operations:
            raise Refused(
                "This path has no such method.",
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                code="method_not_allowed",
                headers={"Allow": ", ".join(self._operations)},
            )
        if (mine := _running) is None:
            raise Busy(retry_after=SOON)
        needed, operation = self._operations[request.method]
        token = _token(request.headers)
        patience = _patience(request)
        call = Call(_id(request), await request.body(), _only(request.headers, "Idempotency-Key"))
        if call.body and request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != _JSON:
            raise Malformed("The body must be application/json.", param="Content-Type")
        caller, reply = await mine.threads.run(_run, token, needed, operation, call)
        if patience and reply.resource["status"] == "pending":
            with _place(mine, of=caller):
                settled = await waiting.settled_for(request.receive, call.confirmation_id, within=patience)
            if settled is not None:
                # The token is looked up again too: it may have been revoked meanwhile.
                _, reply = await mine.threads.run(_run, token, needed, operation, call)
        return refusals.written(reply.resource, status=reply.status)


_JSON = "application/json"


@contextmanager
def _place(mine: _Running, *, of: Bearer) -> Iterator[None]:
    try:
        with mine.places.one(of.principal, most=MOST_WAITING, each=MOST_OF_ONE):
            yield
    except waiting.Crowded as exc:
        raise TooMany(
            "You wait in too many requests at once. Try again later.", retry_after=ASK_AFTER
        ) from exc


def _run(token: str, needed: str, operation: Operation, call: Call) -> tuple[Bearer, Reply]:
    caller = bearer.find_for_api(token=token)
    if caller is None:
        raise _unauthenticated("The credential is unknown, expired, or not for this service.")
    if needed not in expand(caller.scopes):
        raise Refused(
            f"The credential does not allow this. It takes the scope {needed}.",
            status=HTTPStatus.FORBIDDEN,
            code="insufficient_scope",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{needed}"'},
        )
    return caller, operation(caller, call)


def _token(headers: Headers) -> str:
    scheme, _, token = (_only(headers, "Authorization") or "").partition(" ")
    if scheme.lower() != "bearer":
        raise _unauthenticated("Send an access token in the Authorization header.")
    return token


def _unauthenticated(words: str) -> Refused:
    return Refused(
        words,
        status=HTTPStatus.UNAUTHORIZED,
        code="invalid_credential",
        headers={"WWW-Authenticate": "Bearer"},  # RFC 6750 section 3
    )


def _only(headers: Headers, name: str) -> str | None:
    values = headers.getlist(name)
    if len(values) > 1:
        raise Malformed("Send this header once.", param=name)
    return values[0] if values else None


def _id(request: Request) -> uuid.UUID:
    given = request.path_params.get("id")
    if given is None:
        return NOBODY
    try:
        return uuid.UUID(given)
    except ValueError as exc:
        raise NotFound from exc


def _patience(request: Request) -> timedelta | None:
    """How long the caller is ready to wait. Nothing else is said in a query."""
    pairs = request.query_params.multi_items()
    if not pairs:
        return None
    if request.method != "GET" or [name for name, _ in pairs] != ["wait"]:
        raise Malformed("The one field of a query is wait, of a GET.", param="wait")
    return min(wire.duration(pairs[0][1], of="wait"), wire.MAX_WAIT)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    answer = refusals.error("There is nothing here.", status=HTTPStatus.NOT_FOUND, code="not_found")
    await answer(scope, receive, send)

"""The two routes that thousands use at once: waiting, which holds no thread, and redeeming, in batches.

They stand beside Django's, with the same rules for what they take, the same refusals and the same document.
Nothing is remembered of a token from one request to the next.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import cache
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.utils.csp import build_policy
from rest_framework.exceptions import (
    AuthenticationFailed,
    NotAuthenticated,
    PermissionDenied,
    Throttled,
    UnsupportedMediaType,
)
from rest_framework.response import Response as Answer
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from confirmhub.api import callers, errors, parsers, requests
from confirmhub.api.renderers import written
from confirmhub.api.serializers import ConfirmationSerializer, etag
from confirmhub.confirmations import queries, redeemer, waiting
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.errors import ASK_AFTER, SOON, Busy, NotFound
from confirmhub.confirmations.lookups import Reader, Together
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status
from confirmhub.confirmations.threads import Threads
from confirmhub.oauth import bearer
from confirmhub.oauth.bearer import Bearer
from confirmhub.oauth.scopes import expand

APPLICATION = "confirmhub api"  # the name of its connection in pg_stat_activity
MOST_WAITING = 5_000  # in one process
MOST_OF_ONE = 1_000  # of them of one caller
_JSON = "application/json"


class _Hot:
    def __init__(self) -> None:
        self.reader = Reader(name=APPLICATION)
        # One database connection each. A crowd that waits must hold up no redemption.
        self.writers, self.readers = Threads(count=1, name="api"), Threads(count=2, name="api-wait")
        self.tokens = Together(self._tokens)
        self.holders = Together(self._holders)
        self.places = waiting.Places()

    async def close(self) -> None:
        await self.tokens.close()
        await self.holders.close()
        await self.reader.close()
        await self.writers.close()
        await self.readers.close()

    async def _tokens(self, tokens: list[str]) -> dict[str, Bearer]:
        rows = await self.reader.rows(*bearer.statement(tokens=tokens, for_api=True))
        found, used = bearer.read(tokens=tokens, rows=rows)
        if used:
            await self.writers.run(bearer.note_use, ids=used)
        return found

    async def _holders(self, asked: list[tuple[str, uuid.UUID]]) -> dict[tuple[str, uuid.UUID], str]:
        theirs = queries.requesters_of(ids=[id_ for _, id_ in asked])
        rows = await self.reader.rows(*theirs.query.sql_with_params())
        return {(client_id, id_): subject for id_, client_id, subject in rows}


_hot: _Hot | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Serve the routes for as long as the block runs, inside of what waits and what redeems."""
    global _hot  # noqa: PLW0603 - one a process, set and unset by its lifespan alone
    mine = _hot = _Hot()
    try:
        yield
    finally:
        _hot = None
        await mine.close()


async def wait(request: Request, caller: Bearer, hot: _Hot) -> Response:
    """Answer when it was decided or settled in another way, or when the caller's patience is at its end."""
    given = requests.Patience(data=requests.query(request.query_params.multi_items()))
    given.is_valid(raise_exception=True)
    within = timedelta(seconds=given.validated_data["timeout"])
    confirmation_id = _id(request)
    with _place(hot, of=caller):
        status, body, tag = await hot.readers.run(_read, caller, confirmation_id)
        if status is Status.PENDING and await waiting.settled_for(
            request.receive, confirmation_id, within=within
        ) not in (None, status):
            # The token may have been revoked meanwhile.
            now = await _caller(request, hot, scope="confirm:read")
            _, body, tag = await hot.readers.run(_read, now, confirmation_id)
    return _Json(body, headers={"ETag": tag})


async def redeem(request: Request, caller: Bearer, hot: _Hot) -> Response:
    """Spend a yes for the action that is about to be taken, and answer with the receipt."""
    confirmation_id = _id(request)
    kind = request.headers.get("Content-Type", "")
    if kind.partition(";")[0].strip().lower() != _JSON:
        raise UnsupportedMediaType(kind)
    about = requests.about(parsers.parse(await request.body()))
    action = Action(audience=caller.audience, name=about["action"], arguments=about["arguments"])
    requester = caller.principal
    if caller.is_service:  # for whom it asked, the row says
        subject = await hot.holders.find((requester.client_id, confirmation_id))
        if subject is None:
            raise NotFound
        requester = Principal(client_id=requester.client_id, subject=subject)
    receipt = await redeemer.redeem(
        confirmation_id=confirmation_id,
        requester=requester,
        action=action,
        redemption_key=about["redemption_key"],
    )
    outcome = receipt.result and {"result": receipt.result, "detail": receipt.detail}
    return _Json(
        {
            "confirmation_id": str(receipt.confirmation_id),
            "digest": receipt.digest,
            "redemption_key": receipt.redemption_key,
            "redeemed_at": receipt.redeemed_at,
            "replayed": receipt.replayed,
            "outcome": outcome,
        }
    )


def routes(*, inlet: Callable[[ASGIApp], ASGIApp]) -> list[Route]:
    """The routes. `inlet` bounds what a request may send."""
    path = "/api/v1/confirmations/{confirmation_id}"
    return [
        Route(f"{path}/redeem", inlet(_Endpoint(redeem, scope="confirm:redeem", methods=("POST",)))),
        Route(f"{path}/wait", inlet(_Endpoint(wait, scope="confirm:read", methods=("GET", "HEAD")))),
    ]


def _running() -> _Hot:
    if _hot is None:
        raise Busy(retry_after=SOON)
    return _hot


class _Endpoint:
    """One route: what it raises becomes the answer that the API gives everywhere."""

    def __init__(
        self,
        answer: Callable[[Request, Bearer, _Hot], Awaitable[Response]],
        *,
        scope: str,
        methods: tuple[str, ...],
    ) -> None:
        self.required_scope = scope
        self._answer = answer
        self._methods = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if scope["method"] not in self._methods:
            refusal = errors.problem(
                code="method_not_allowed",
                title="Method Not Allowed",
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                headers={"Allow": ", ".join(self._methods)},
            )
            await _of(refusal)(scope, receive, send)
            return
        try:
            hot = _running()
            caller = await _caller(request, hot, scope=self.required_scope)
            answer = await self._answer(request, caller, hot)
        except Exception as exc:  # noqa: BLE001 - the table answers them all, and logs what it does not know
            answer = _of(errors.handle(exc, {"view": self}))
        await answer(scope, receive, send)


async def _caller(request: Request, hot: _Hot, *, scope: str) -> Bearer:
    given = request.headers.getlist("Authorization")
    if len(given) > 1:  # which of them counts, a proxy and we might see differently
        raise AuthenticationFailed
    scheme, _, token = "".join(given).partition(" ")
    if scheme.lower() != "bearer":
        raise NotAuthenticated
    found = await hot.tokens.find(token)
    if found is None:
        raise AuthenticationFailed
    if scope not in expand(found.scopes):
        raise PermissionDenied
    return found


@contextmanager
def _place(hot: _Hot, *, of: Bearer) -> Iterator[None]:
    try:
        with hot.places.one(of.principal, most=MOST_WAITING, each=MOST_OF_ONE):
            yield
    except waiting.Crowded as exc:
        raise Throttled(wait=ASK_AFTER) from exc


def _id(request: Request) -> uuid.UUID:
    given = request.path_params["confirmation_id"]
    try:
        found = uuid.UUID(given)
    except ValueError as exc:
        raise NotFound from exc
    if str(found) != given:  # one address for each, as Django has it
        raise NotFound
    return found


def _read(caller: Bearer, confirmation_id: uuid.UUID) -> tuple[Status, Any, str]:
    requester = callers.holding(bearer=caller, confirmation_id=confirmation_id)
    found = queries.get_for_requester(confirmation_id=confirmation_id, requester=requester)
    return found.effective_status, ConfirmationSerializer(found).data, etag(found)


def _of(answer: Answer) -> Response:
    headers = dict(answer.headers)
    headers.pop("Content-Type")  # Django's own: the answer is not rendered by it
    kind = answer.content_type or _JSON
    return _Json(answer.data, status=answer.status_code, headers=headers, media_type=kind)


@cache
def _guards(*, https: bool) -> tuple[tuple[bytes, bytes], ...]:
    """What Django's middleware adds to every other answer."""
    guards = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": build_policy(settings.SECURE_CSP),
        "Cross-Origin-Opener-Policy": settings.SECURE_CROSS_ORIGIN_OPENER_POLICY,
        "Referrer-Policy": settings.SECURE_REFERRER_POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": settings.X_FRAME_OPTIONS,
        "X-Robots-Tag": "noindex, nofollow",
    }
    if https:
        guards["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"
    return tuple(map(_raw, guards.items()))


class _Json(Response):
    """An answer whose headers are ready but for two: thousands are made each second."""

    def __init__(
        self,
        body: Any,
        *,
        status: int = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
        media_type: str = _JSON,
    ) -> None:
        super().__init__(written(body), status, headers, media_type)

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        self.raw_headers = [
            *_guards(https=settings.HTTPS),
            (b"content-length", b"%d" % len(self.body)),
            (b"content-type", (self.media_type or _JSON).encode("ascii")),
            *map(_raw, (headers or {}).items()),
        ]


def _raw(header: tuple[str, str]) -> tuple[bytes, bytes]:
    return header[0].lower().encode("latin-1"), header[1].encode("latin-1")

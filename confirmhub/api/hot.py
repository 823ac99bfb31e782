"""The two routes that thousands use at once: waiting, which holds no thread, and redeeming, in batches.

They stand beside Django's, with the same rules for what they take, the same refusals and the same document.
Tokens are looked up together, those that arrive while the last look-up runs, so that nothing is remembered
of a token from one request to the next.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from rest_framework.exceptions import (
    AuthenticationFailed,
    NotAuthenticated,
    PermissionDenied,
    UnsupportedMediaType,
    ValidationError,
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
from confirmhub.confirmations.errors import Busy, NotFound
from confirmhub.confirmations.states import Status
from confirmhub.confirmations.threads import Threads
from confirmhub.oauth import bearer
from confirmhub.oauth.bearer import Bearer
from confirmhub.oauth.scopes import expand

THREADS = 2  # one database connection each
MOST_WAITING = 5_000  # in one process
_JSON = "application/json"

logger = logging.getLogger(__name__)


class _Tokens:
    """Looks up in one statement what arrived while the last one ran."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._asked: dict[str, asyncio.Future[Bearer | None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, token: str) -> Bearer | None:
        if token not in self._asked:
            self._asked[token] = asyncio.get_running_loop().create_future()
        answer = self._asked[token]
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_up())
        return await asyncio.shield(answer)

    async def _look_up(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, {}
            try:
                found = await self._threads.run(bearer.find_all_for_api, tokens=list(asked))
            except Exception as exc:  # noqa: BLE001 - each of those who wait raises it
                for answer in asked.values():
                    answer.set_exception(exc)
                continue
            for token, answer in asked.items():
                answer.set_result(found.get(token))


class _Hot:
    def __init__(self) -> None:
        self.threads = Threads(count=THREADS, name="api")
        self.tokens = _Tokens(self.threads)
        self.waiting = 0


_hot: _Hot | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Serve the routes for as long as the block runs, inside of `waiting.listening`."""
    global _hot  # noqa: PLW0603 - one a process, set and unset by its lifespan alone
    mine = _hot = _Hot()
    try:
        async with redeemer.running():
            yield
    finally:
        _hot = None
        await mine.threads.close()


async def wait(request: Request, caller: Bearer, hot: _Hot) -> Response:
    """Answer when it was decided or settled in another way, or when the caller's patience is at its end."""
    given = requests.Patience(data=_query(request))
    given.is_valid(raise_exception=True)
    within = timedelta(seconds=given.validated_data["timeout"])
    confirmation_id = _id(request)
    if hot.waiting >= MOST_WAITING:
        raise Busy(retry_after=5)
    hot.waiting += 1
    try:
        status, body, tag = await hot.threads.run(_read, caller, confirmation_id)
        if status is Status.PENDING and await waiting.settled(confirmation_id, within=within) is not status:
            _, body, tag = await hot.threads.run(_read, caller, confirmation_id)
    finally:
        hot.waiting -= 1
    return _json(body, headers={"ETag": tag})


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
        requester = await hot.threads.run(callers.holding, bearer=caller, confirmation_id=confirmation_id)
    receipt = await redeemer.redeem(
        confirmation_id=confirmation_id,
        requester=requester,
        action=action,
        redemption_key=about["redemption_key"],
    )
    outcome = receipt.result and {"result": receipt.result, "detail": receipt.detail}
    return _json(
        {
            "confirmation_id": receipt.confirmation_id,
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
        Route(f"{path}/wait", inlet(_Endpoint(wait, scope="confirm:read", methods=("GET", "HEAD")))),
        Route(f"{path}/redeem", inlet(_Endpoint(redeem, scope="confirm:redeem", methods=("POST",)))),
    ]


def _running() -> _Hot:
    if _hot is None:
        raise Busy(retry_after=1)
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
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise NotAuthenticated
    found = await hot.tokens.find(token)
    if found is None:
        raise AuthenticationFailed
    if scope not in expand(found.scopes):
        raise PermissionDenied
    return found


def _id(request: Request) -> uuid.UUID:
    try:
        return uuid.UUID(request.path_params["confirmation_id"])
    except ValueError as exc:
        raise NotFound from exc


def _query(request: Request) -> dict[str, str]:
    pairs = request.query_params.multi_items()
    if len(dict(pairs)) != len(pairs):
        raise ValidationError({"query": ["Send each field once."]})
    return dict(pairs)


def _read(caller: Bearer, confirmation_id: uuid.UUID) -> tuple[Status, Any, str]:
    requester = callers.holding(bearer=caller, confirmation_id=confirmation_id)
    found = queries.get_for_requester(confirmation_id=confirmation_id, requester=requester)
    return found.effective_status, ConfirmationSerializer(found).data, etag(found)


def _of(answer: Answer) -> Response:
    headers = dict(answer.headers)
    headers.pop("Content-Type")  # Django's own: the answer is not rendered by it
    kind = answer.content_type or _JSON
    return _json(answer.data, status=answer.status_code, headers=headers, media_type=kind)


def _json(
    body: Any, *, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None, media_type: str = _JSON
) -> Response:
    return Response(
        written(body),
        status_code=status,
        headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})},
        media_type=media_type,
    )

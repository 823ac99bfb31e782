"""How much waits for somebody, and how one confirmation stands, as it changes: server-sent events.

`GET /live` answers the browser of a signed-in person for as long as their session lasts; `?of=` names the
confirmation of an open page. While nothing happens it holds neither a thread nor a connection to the
database.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from importlib import import_module
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.db.models import Count, Max
from django.http import HttpRequest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from confirmhub.confirmations import queries, waiting
from confirmhub.confirmations.errors import NotFound
from confirmhub.confirmations.states import Status
from confirmhub.confirmations.threads import Threads
from confirmhub.pages import lists

STREAMS = 3  # of one person in one process: a browser has six connections to a host, and pages need some
ALL_STREAMS = 1_000  # in one process
THREADS = 2  # one database connection each; where more streams have news than they can serve, news waits
LOOK_AGAIN = timedelta(seconds=20)  # without news: expiry notifies nobody, and a session may have ended
FOLLOW = timedelta(seconds=3)  # the same where a yes is followed: that it is used notifies nobody
PAUSE = 1.0  # seconds between two looks of one stream

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Accel-Buffering": "no",  # nginx would keep the events back
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What waits for one person at one moment."""

    person: int
    count: int
    newest: int
    """When the newest of it was asked, in microseconds since 1970; 0 where nothing waits."""

    standing: str = ""
    """Of the confirmation that is followed, as its page has it; empty where it is none of theirs."""


class _Streams:
    """The open streams of this process, and the threads that look for them."""

    def __init__(self) -> None:
        self.of: defaultdict[int, deque[asyncio.Event]] = defaultdict(deque)
        self.threads = Threads(count=THREADS, name="live")

    async def look(self, session_key: str, of: UUID | None) -> Seen | None:
        return await self.threads.run(look, session_key=session_key, of=of)

    def open(self, person: int) -> asyncio.Event:
        """Register a stream. The event that it gets is set when it must end: the newest may stay."""
        theirs = self.of[person]
        if len(theirs) >= STREAMS:
            theirs.popleft().set()
        ended = asyncio.Event()
        theirs.append(ended)
        return ended

    def close(self, person: int, ended: asyncio.Event) -> None:
        if ended in self.of[person]:
            self.of[person].remove(ended)
        if not self.of[person]:
            del self.of[person]


_streams: _Streams | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Serve streams for as long as the block runs, inside of `waiting.listening`."""
    global _streams  # noqa: PLW0603 - one a process, set and unset by its lifespan alone
    mine = _streams = _Streams()
    try:
        yield
    finally:
        _streams = None
        await mine.threads.close()


async def live(request: Request) -> Response:
    """Answer with events, now and at each change.

    Such as `{"count": 2, "newest": 1764512345678901, "standing": "approved 1"}`.
    """
    streams, of = _streams, _followed(request)
    # No other site may open streams in a person's name. Browsers without the header send no foreign cookie.
    foreign = request.headers.get("sec-fetch-site", "same-origin") != "same-origin"
    session_key = request.cookies.get(settings.SESSION_COOKIE_NAME, "").partition("\0")[0]
    if streams is None or sum(map(len, streams.of.values())) >= ALL_STREAMS:
        return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE, headers=HEADERS)
    change = await waiting.changed(since=0, within=LOOK_AGAIN)
    try:
        first = None if foreign or not session_key else await streams.look(session_key, of)
    except DatabaseError:
        return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE, headers=HEADERS)
    if first is None:
        return Response(status_code=HTTPStatus.UNAUTHORIZED, headers=HEADERS)
    if request.method == "HEAD":
        return Response(headers=HEADERS, media_type="text/event-stream")
    events = _events(streams, session_key, of, first, change)
    return StreamingResponse(events, headers=HEADERS, media_type="text/event-stream")


def look(*, session_key: str, of: UUID | None = None) -> Seen | None:
    """What there is to tell the person of this session; None where the session is over. Blocks."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    person = get_user(request)
    if not isinstance(person, User):
        return None
    found = (
        queries.list_waiting_for(approver=person)
        .order_by()
        .aggregate(number=Count("pk"), at=Max("requested_at"))
    )
    newest = round(found["at"].timestamp() * 1_000_000) if found["at"] else 0
    return Seen(person.pk, found["number"], newest, _standing(person, of) if of else "")


def _standing(person: User, confirmation_id: UUID) -> str:
    try:
        found = queries.get_for_approver(confirmation_id=confirmation_id, approver=person)
    except NotFound:
        return ""
    return lists.standing(found, votes=found.decisions.count())


def _followed(request: Request) -> UUID | None:
    try:
        return UUID(request.query_params.get("of", ""))
    except ValueError:
        return None


async def _events(
    streams: _Streams, session_key: str, of: UUID | None, seen: Seen, change: int
) -> AsyncIterator[str]:
    ended = streams.open(seen.person)
    try:
        yield f"retry: 5000\n{_event(seen)}"
        while not await _is_set(ended, PAUSE):
            is_given = seen.standing.startswith((Status.APPROVED, Status.REDEEMED))
            change = await _change_or_end(change, ended, FOLLOW if is_given else LOOK_AGAIN)
            if ended.is_set():
                break
            if waiting.has_ended():
                return  # without the last event, so that the browser connects to the next process
            try:
                now = await streams.look(session_key, of)
            except DatabaseError:
                now = seen  # it says nothing new while the database is away
            if now is None or now.person != seen.person:
                break
            yield _event(now) if now != seen else ": still here\n\n"
            seen = now
        # The script closes its side; without this the browser would ask again.
        yield "event: end\ndata:\n\n"
    finally:
        streams.close(seen.person, ended)


def _event(seen: Seen) -> str:
    told: dict[str, object] = {"count": seen.count, "newest": seen.newest}
    if seen.standing:
        told["standing"] = seen.standing
    return f"data: {json.dumps(told)}\n\n"


async def _is_set(event: asyncio.Event, within: float) -> bool:
    try:
        return await asyncio.wait_for(event.wait(), within)
    except TimeoutError:
        return False


async def _change_or_end(since: int, ended: asyncio.Event, within: timedelta) -> int:
    change = asyncio.create_task(waiting.changed(since=since, within=within))
    end = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait((change, end), return_when=asyncio.FIRST_COMPLETED)
        return change.result() if change.done() else since
    finally:
        change.cancel()
        end.cancel()


routes = [Route("/live", live, methods=["GET"])]

"""How the web process stops: who waits is answered at once, and the few that are cut off are told so."""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus

import uvicorn
from mcp_types import INTERNAL_ERROR
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from confirmhub.confirmations import waiting
from confirmhub.ops.layers import Layer, refuse
from mcp_bridge.app import PATH


class Server(uvicorn.Server):
    """Keeps nobody waiting when it stops: a wait ends as if its time were up, and who waited asks again."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        waiting.end_all()
        await super().shutdown(sockets)


class Ending(Layer):
    """Answers a request that the server's stop cuts off, which would be a failure with a trace otherwise."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        started: Message | None = None

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = message
            await send(message)

        try:
            await self.app(scope, receive, answer)
        except asyncio.CancelledError:
            # Only the server cancels the task of a request: when it stops, and its patience is over.
            if started is None:
                await _cut_off(scope)(scope, receive, send)
            elif _is_stream(started):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            # Else the server closes the connection: half an answer must not pass for a whole one.


def _cut_off(scope: Scope) -> Response:
    """The answer to who was cut off: only what was read can be asked again without a look."""
    headers = {"Cache-Control": "no-store"}
    if scope["method"] in ("GET", "HEAD"):
        words = "The service is stopping. Ask again in a moment."
        headers["Retry-After"] = "1"
    elif scope["path"] == PATH:
        words = (
            "The service is stopping, and this call was cut off. It may be under way or done. Do not assume "
            "either; look with get_confirmation before you call again."
        )
    else:
        words = (
            "The service is stopping, and this request was cut off. It may be under way or done; look before "
            "you ask again."
        )
    status = HTTPStatus.SERVICE_UNAVAILABLE
    if scope["path"] != PATH:
        return refuse(scope, status=status, code="cut_off", words=words, headers=headers)
    # JSON-RPC 2.0 section 5: the id is null, which was not read here.
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": INTERNAL_ERROR, "message": words}}
    return JSONResponse(refusal, status_code=status, headers=headers)


def _is_stream(start: Message) -> bool:
    """Whether it has no end of its own, so that any will do: an EventSource connects again."""
    return Headers(raw=start["headers"]).get("content-type", "").startswith("text/event-stream")

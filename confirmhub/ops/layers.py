"""What the layers around the application share: they see requests alone, and refuse in the caller's form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from http import HTTPStatus

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from confirmhub.aap import refusals
from confirmhub.aap import routes as aap
from confirmhub.api import errors
from confirmhub.api.renderers import written


class Layer(ABC):
    """A layer around an application. What is no request goes through: the start and the end of it all."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return (self.handle if scope["type"] == "http" else self.app)(scope, receive, send)

    @abstractmethod
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have the application do it."""


def refuse(
    scope: Scope, *, status: HTTPStatus, code: str, words: str, headers: Mapping[str, str]
) -> Response:
    """A refusal in the form that callers of this address read; `code` is for programs, where they do."""
    sent = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **headers}
    if scope["path"].startswith(f"{aap.PREFIX}/"):
        return refusals.error(words, status=status, code=code, headers=sent)
    if scope["path"].startswith("/api/"):
        told = errors.handle(errors.Unread(status=status, words=words, code=code), {})
        return Response(written(told.data), status_code=status, headers=sent, media_type=told.content_type)
    return PlainTextResponse(f"{words}\n", status_code=status, headers=sent)

"""The one place where a refusal becomes an answer in the protocol's form of an error."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from starlette.responses import Response

from confirmhub import logs
from confirmhub.confirmations import errors

logger = logging.getLogger(__name__)


class Refused(Exception):
    """The protocol's own refusal. The text is ours, and safe to show."""

    def __init__(
        self,
        words: str,
        *,
        status: HTTPStatus,
        code: str,
        param: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(words)
        self.status = status
        self.code = code
        self.param = param
        self.headers = headers or {}


class Malformed(Refused):
    """What was sent is not what the protocol takes."""

    def __init__(self, words: str, *, param: str = "", code: str = "invalid_request") -> None:
        super().__init__(words, status=HTTPStatus.BAD_REQUEST, code=code, param=param)


class Conflict(Refused):
    """It does not fit what is there already."""

    def __init__(self, words: str, *, code: str) -> None:
        super().__init__(words, status=HTTPStatus.CONFLICT, code=code)


class TooMany(Refused):
    """It asks more at once, or within a short time, than it may."""

    def __init__(self, words: str, *, retry_after: int) -> None:
        headers = {"Retry-After": str(retry_after)}
        super().__init__(
            words, status=HTTPStatus.TOO_MANY_REQUESTS, code="too_many_requests", headers=headers
        )


# The protocol's types; of a status that it does not name, the nearest.
TYPES = {
    HTTPStatus.BAD_REQUEST: "invalid_request",
    HTTPStatus.UNAUTHORIZED: "authentication",
    HTTPStatus.FORBIDDEN: "authorization",
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "invalid_request",
    HTTPStatus.REQUEST_TIMEOUT: "invalid_request",
    HTTPStatus.CONFLICT: "conflict",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "invalid_request",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "invalid_request",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "invalid_request",
    HTTPStatus.INTERNAL_SERVER_ERROR: "internal",
    HTTPStatus.SERVICE_UNAVAILABLE: "dependency",
}

# Of a move that the ledger did not make. What a client does of its own is decided in `calls`.
STATUS: dict[type[errors.ConfirmationError], HTTPStatus] = {
    errors.InvalidAction: HTTPStatus.BAD_REQUEST,
    errors.PolicyDenies: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.TooManyOpen: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Halted: HTTPStatus.CONFLICT,
    errors.ActionDiffers: HTTPStatus.CONFLICT,
    errors.Busy: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}


def answer(exc: Exception) -> Response:
    """The answer to whatever a call raised; what nobody expected is logged, and tells nothing."""
    match exc:
        case Refused():
            return error(str(exc), status=exc.status, code=exc.code, param=exc.param, headers=exc.headers)
        case errors.ConfirmationError() if type(exc) in STATUS:
            wait = getattr(exc, "retry_after", None)
            headers = {} if wait is None else {"Retry-After": str(wait)}
            return error(str(exc), status=STATUS[type(exc)], code=exc.code, headers=headers)
    logger.error("a call of the approval protocol failed", exc_info=exc)
    if isinstance(exc, InterfaceError | OperationalError):  # a statement timed out, or Postgres is away
        return answer(errors.Unavailable())
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return error(status.phrase, status=status, code="internal")


def error(
    words: str,
    *,
    status: HTTPStatus,
    code: str,
    param: str = "",
    headers: dict[str, str] | None = None,
) -> Response:
    """One error. `code` is for programs and stays what it is; the words are for people."""
    told = {"type": TYPES[status], "code": code, "message": words, "request_id": logs.request_id.get()}
    if param:
        told["param"] = param
    return written({"error": told}, status=status, headers=headers)


def written(
    body: dict[str, object], *, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    """An answer in ASCII: an argument may hold half of a surrogate pair, which UTF-8 cannot carry."""
    return Response(
        json.dumps(body, separators=(",", ":")),
        status_code=status,
        headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})},
        media_type="application/json",
    )

"""The one place where a refusal becomes an HTTP answer: problem details (RFC 9457)."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from confirmhub.api import auth
from confirmhub.confirmations import errors

logger = logging.getLogger(__name__)

STATUS: dict[type[errors.ConfirmationError], HTTPStatus] = {
    errors.InvalidAction: HTTPStatus.BAD_REQUEST,
    errors.PolicyDenies: HTTPStatus.FORBIDDEN,
    errors.NotApprover: HTTPStatus.FORBIDDEN,
    errors.NotPermitted: HTTPStatus.FORBIDDEN,
    errors.PageNeeded: HTTPStatus.FORBIDDEN,
    errors.SignInTooOld: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Pending: HTTPStatus.CONFLICT,
    errors.Denied: HTTPStatus.CONFLICT,
    errors.Expired: HTTPStatus.CONFLICT,
    errors.Revoked: HTTPStatus.CONFLICT,
    errors.Cancelled: HTTPStatus.CONFLICT,
    errors.AlreadyRedeemed: HTTPStatus.CONFLICT,
    errors.AlreadyDecided: HTTPStatus.CONFLICT,
    errors.AlreadyReported: HTTPStatus.CONFLICT,
    errors.NotRedeemed: HTTPStatus.CONFLICT,
    errors.Halted: HTTPStatus.CONFLICT,
    errors.ActionDiffers: HTTPStatus.CONFLICT,
    errors.TargetChanged: HTTPStatus.CONFLICT,
    errors.ViewChanged: HTTPStatus.CONFLICT,
    errors.TooManyOpen: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Busy: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}

# RFC 6750 section 3.1: the error's code, and none where no token was sent.
CHALLENGES: dict[type[Exception], tuple[HTTPStatus, str, str]] = {
    exceptions.NotAuthenticated: (
        HTTPStatus.UNAUTHORIZED,
        "",
        "Send an access token in the Authorization header.",
    ),
    exceptions.AuthenticationFailed: (
        HTTPStatus.UNAUTHORIZED,
        "invalid_token",
        "The access token is unknown, expired, or not for this service.",
    ),
    exceptions.PermissionDenied: (
        HTTPStatus.FORBIDDEN,
        "insufficient_scope",
        "The access token does not allow this.",
    ),
}

# What is refused before anything behind the address was asked.
UNREAD: dict[HTTPStatus, str] = {
    HTTPStatus.BAD_REQUEST: "wrong_host",
    HTTPStatus.REQUEST_TIMEOUT: "too_slow",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too_large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "unsupported_media_type",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "headers_too_large",
}


class Unread(Exception):
    """A request that was refused before anything behind its address was asked."""

    def __init__(
        self, *, status: HTTPStatus, words: str, code: str | None = None, detail: str | None = None
    ) -> None:
        super().__init__(words)
        self.status = status
        self.code = code or UNREAD[status]
        self.members: dict[str, Any] = {"detail": detail} if detail else {}


class NoSuchPath(Unread):
    """There is nothing at this address."""

    def __init__(self) -> None:
        super().__init__(
            status=HTTPStatus.NOT_FOUND,
            code="no_such_path",
            words="There is nothing at this address.",
            detail="There are /api/v1/confirmations, /api/v1/confirmations/{id} and below it /wait, /redeem,"
            " /outcome, /cancel and /receipt, then /api/v1/waiting and /api/v1/receipt-keys. /api/v1/docs"
            " says what each takes and answers, and /api/v1/openapi.json says it to programs.",
        )


def handle(exc: Exception, context: dict[str, Any]) -> Response:
    """Answer any exception of a view. Django REST framework's EXCEPTION_HANDLER."""
    if type(exc) in CHALLENGES:
        return _challenge(*CHALLENGES[type(exc)], scope=auth.scope_of(context.get("view")))
    match exc:
        case errors.ConfirmationError():
            return _refusal(exc)
        case Http404():
            return _refusal(errors.NotFound())
        case Unread():
            return problem(code=exc.code, title=str(exc), status=exc.status, **exc.members)
        case exceptions.APIException():
            return _of_the_framework(exc)
    return _of_a_bug(exc)


def _of_a_bug(exc: Exception) -> Response:
    logger.error("a request failed", exc_info=exc)
    if isinstance(exc, InterfaceError | OperationalError):  # a statement timed out, or Postgres is away
        return _refusal(errors.Unavailable())
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return problem(code="error", title=status.phrase, status=status)


def _of_the_framework(exc: exceptions.APIException) -> Response:
    status = HTTPStatus(exc.status_code)
    match exc:
        case exceptions.ValidationError():
            title = "Some fields are not as they must be."
            return problem(code="invalid_request", title=title, status=status, errors=exc.detail)
        case exceptions.Throttled():
            title = "Too many requests at once, or within a short time. Try again later."
            headers = {"Retry-After": str(getattr(exc, "wait", None) or errors.RETRY_AFTER)}
            return problem(code="too_many_requests", title=title, status=status, headers=headers)
        case exceptions.ParseError():
            return problem(code="malformed", title=str(exc.detail), status=status)
    return problem(code=str(exc.default_code), title=status.phrase, status=status)


def problem(
    *,
    code: str,
    title: str,
    status: HTTPStatus,
    headers: dict[str, str] | None = None,
    **members: object,
) -> Response:
    """One problem. `code` names it for programs and stays what it is; the rest is for people."""
    body = {"type": f"urn:confirmhub:{code}", "title": title, "status": int(status), **members}
    return Response(body, status=status, headers=headers, content_type="application/problem+json")


def _refusal(exc: errors.ConfirmationError) -> Response:
    title = type(exc).__doc__ or exc.code
    members: dict[str, object] = {"detail": str(exc)} if str(exc) != title else {}
    headers = {}
    match exc:
        case errors.Pending() | errors.TooManyOpen() | errors.Busy():
            headers["Retry-After"] = str(exc.retry_after)
        case errors.Denied() | errors.Revoked() | errors.Halted():
            members["reason"] = exc.reason
        case errors.AlreadyRedeemed():
            members["redeemed_at"] = exc.redeemed_at
    return problem(code=exc.code, title=title, status=STATUS[type(exc)], headers=headers, **members)


def _challenge(status: HTTPStatus, error: str, title: str, *, scope: str) -> Response:
    return problem(
        code=error or "unauthenticated",
        title=title,
        status=status,
        headers={"WWW-Authenticate": auth.challenge(error=error, scope=scope)},
    )

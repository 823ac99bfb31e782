"""The answers that are no page: each says what happened in words, in the same look, and changes nothing."""

# ruff: noqa: ARG001 - Django calls these with arguments that it names

from __future__ import annotations

import sys
from http import HTTPStatus

from django.core.exceptions import ValidationError
from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import loader

from confirmhub.confirmations.errors import RETRY_AFTER

_NO_VALUE = (OverflowError, ValidationError, ValueError)  # "year 0", a primary key of letters


# Where the forms are whose addresses name no confirmation; those of all others are on the first page.
_FORMS = {"notices:add": "notices:page", "notices:change": "notices:page", "notices:quiet": "notices:page"}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400: the request itself was wrong (a bad Host header, a form too large)."""
    return render(request, "400.html", status=HTTPStatus.BAD_REQUEST)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403: signed in, but not allowed."""
    return render(request, "403.html", status=HTTPStatus.FORBIDDEN)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form that was not sent from one of our own pages of this session."""
    return render(request, "403_csrf.html", status=HTTPStatus.FORBIDDEN)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404 in the one wording for what never was, what is not yours and what is over."""
    return render(request, "404.html", status=HTTPStatus.NOT_FOUND)


def not_allowed(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Put words to a 405, which Django answers without any: the address is for a form, and somebody came."""
    match = request.resolver_match
    context = {
        "confirmation_id": match.kwargs.get("confirmation_id") if match else None,
        "form_page": _FORMS.get(match.view_name) if match else None,
    }
    page = render(request, "405.html", context, status=HTTPStatus.METHOD_NOT_ALLOWED)
    page.headers["Allow"] = response.headers["Allow"]  # RFC 9110 section 15.5.6
    return page


def busy() -> HttpResponse:
    """Answer 503, with the seconds after which it is worth trying again. Needs no database."""
    page = loader.render_to_string("503.html")
    headers = {"Retry-After": str(RETRY_AFTER)}
    return HttpResponse(page, status=HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer what nothing has caught: what the sender or the moment is to blame for is no 500.

    Without the request, since reading its user may be what failed. The log has the trace in any case.
    """
    exc = sys.exception()  # Django calls this while it handles it
    if isinstance(
        exc, InterfaceError | OperationalError
    ):  # a lock or a statement timed out, a deadlock, no Postgres
        return busy()
    if isinstance(exc, DataError) or (_is_admin(request) and isinstance(exc, _NO_VALUE)):
        return HttpResponse(loader.render_to_string("400.html"), status=HTTPStatus.BAD_REQUEST)
    return HttpResponse(loader.render_to_string("500.html"), status=HTTPStatus.INTERNAL_SERVER_ERROR)


def _is_admin(request: HttpRequest) -> bool:
    """Whether it is Django's admin, which looks rows up by whatever the query and the form say."""
    return request.resolver_match is not None and request.resolver_match.app_name == "admin"

"""The answers that are no page: each says what happened in words, in the same look, and changes nothing."""

# ruff: noqa: ARG001 - Django calls these with arguments that it names

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import loader


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


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 without the request, since reading its user may be what failed."""
    return HttpResponse(loader.render_to_string("500.html"), status=HTTPStatus.INTERNAL_SERVER_ERROR)

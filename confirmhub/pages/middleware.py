"""What no view of Django's has to care for: what its request may hold, and what its answer carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from itertools import chain

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, QueryDict

from confirmhub.pages.errors import not_allowed


def private_pages(answer: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Add `no-store` and `noindex` to every answer. Static files are answered before this runs."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = answer(request)
        # Not a default but a rule: Django's admin and the OAuth pages set weaker values of their own.
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Robots-Tag"] = "noindex, nofollow"
        return response

    return middleware


def worded_refusals(answer: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Give a browser a page of ours where a view has refused its method and said no more."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = answer(request)
        empty = response.status_code == HTTPStatus.METHOD_NOT_ALLOWED and not response.content
        return not_allowed(request, response) if empty and request.accepts("text/html") else response

    return middleware


def plain_requests(answer: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Refuse what no form, link or host of ours sends, and Postgres would stumble over.

    A cookie is dropped instead: who has one that was tampered with is nobody, not locked out.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/api/"):
            return answer(request)  # it reads no form and no cookie, and refuses the rest in its own words
        for name in [name for name, value in request.COOKIES.items() if "\0" in name + value]:
            del request.COOKIES[name]
        _ = request.body  # kept by Django once it is read, so that views can still read it, or the form
        if any("\0" in text for text in chain([request.path], _texts(request.GET), _texts(request.POST))):
            raise BadRequest("A NUL character was sent.")
        return answer(request)

    return middleware


def _texts(fields: QueryDict) -> Iterable[str]:
    return chain(fields, *(values for _, values in fields.lists()))

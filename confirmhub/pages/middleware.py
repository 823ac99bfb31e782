"""What every answer of Django's carries: nobody keeps it, nobody lists it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


def private_pages(answer: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Add `no-store` and `noindex` to every answer. Static files are answered before this runs."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = answer(request)
        # Not a default but a rule: Django's admin and the OAuth pages set weaker values of their own.
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Robots-Tag"] = "noindex, nofollow"
        return response

    return middleware

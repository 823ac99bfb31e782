"""The admin's sign-in: the page for everybody, and a plain refusal for who is signed in already."""

# ruff: noqa: ARG001 - Django calls this with an argument that it names

from __future__ import annotations

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse


def sign_in(request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
    """Go to the sign-in page and come back; where `next` leads, that page checks.

    Raises:
        PermissionDenied: Signed in, but not as staff: asking for the password once more would help nobody.
    """
    if request.user.is_authenticated:
        raise PermissionDenied
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))

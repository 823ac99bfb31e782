"""Where a person sees which programs may act for them, and ends that."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from confirmhub import display
from confirmhub.oauth import connections

ON_A_PAGE = 20  # programs


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def hosts(request: HttpRequest) -> HttpResponse:
    """The list; a POST disconnects one of it."""
    assert isinstance(request.user, User)
    if request.method == "POST":
        connections.disconnect(user=request.user, key=_number(request.POST.get("key", "")))
        return redirect("oauth2_provider:hosts")
    found = connections.list_connections(user=request.user)
    page = Paginator(found, ON_A_PAGE).get_page(_number(request.GET.get("page", "1")))
    context = {
        "lines": [
            {"connection": connection, "name": display.show(connection.client.name or "no name")}
            for connection in page
        ],
        "count": len(found),
        "newer": page.previous_page_number() if page.has_previous() else 0,
        "older": page.next_page_number() if page.has_next() else 0,
    }
    return render(request, "oauth2_provider/hosts.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def disconnect_all(request: HttpRequest) -> HttpResponse:
    """The question whether to disconnect all; a POST does it."""
    assert isinstance(request.user, User)
    if request.method == "POST":
        connections.disconnect_all(user=request.user)
        return redirect("oauth2_provider:hosts")
    count = len(connections.list_connections(user=request.user))
    return render(request, "oauth2_provider/disconnect_all.html", {"count": count})


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise BadRequest
    return int(text)

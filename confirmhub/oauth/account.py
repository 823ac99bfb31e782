"""Where a person sees which programs may act for them, and ends that."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from confirmhub import display
from confirmhub.oauth import connections


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def hosts(request: HttpRequest) -> HttpResponse:
    """The list; a POST disconnects one of it."""
    assert isinstance(request.user, User)
    if request.method == "POST":
        key = request.POST.get("key", "")
        if not key.isascii() or not key.isdecimal() or len(key) > 18:
            raise BadRequest
        connections.disconnect(user=request.user, key=int(key))
        return redirect("oauth2_provider:hosts")
    lines = [
        {"connection": connection, "name": display.show(connection.client.name or "no name")}
        for connection in connections.list_connections(user=request.user)
    ]
    return render(request, "oauth2_provider/hosts.html", {"lines": lines})

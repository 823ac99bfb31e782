"""Tags of our pages."""

from __future__ import annotations

from dataclasses import dataclass

from django import template
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest
from django.template.context import Context

from confirmhub.pages import values
from confirmhub.pages.values import Value

register = template.Library()


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What the header shows of the person whose session this is."""

    name: Value
    staff: bool
    page: str


@register.simple_tag(takes_context=True)
def signed_in(context: Context) -> SignedIn | None:
    """The person signed in; None on pages before the sign-in and on the page for our own failures."""
    request = context.get("request")
    user = getattr(request, "user", None)
    if not isinstance(request, HttpRequest) or not isinstance(user, AbstractBaseUser):
        return None
    match = request.resolver_match
    return SignedIn(
        name=values.value(user.get_username()),
        staff=bool(getattr(user, "is_staff", False)),
        page=match.view_name if match else "",
    )

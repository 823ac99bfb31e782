"""Tags of our pages."""

from __future__ import annotations

from dataclasses import dataclass

from django import template
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.http import HttpRequest
from django.template.context import Context
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from confirmhub.display import Part, Shown
from confirmhub.pages import stops, values
from confirmhub.pages.stops import Stop
from confirmhub.pages.values import Piece, Value

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


@register.simple_tag(takes_context=True, name="stops")
def stops_told(context: Context) -> list[Stop]:
    """The stops of redemptions to tell the person signed in of; none on pages before the sign-in."""
    request = context.get("request")
    user = getattr(request, "user", None)
    return stops.told(viewer=user) if isinstance(user, User) else []


@register.simple_tag(takes_context=True)
def anything_is_stopped(context: Context) -> bool:
    """Whether to tell who is not signed in that there is a stop, which is all that they are told."""
    user = getattr(context.get("request"), "user", None)  # none on the page for our own failures
    return isinstance(user, AnonymousUser) and stops.anybody_is_told()


@register.simple_tag
def pieces(value: Value) -> SafeString:
    """A text on one line, to stand in an isolate that the template gives it."""
    return _draw(value.pieces)


@register.simple_tag
def shown(value: Shown) -> SafeString:
    """A text that was rendered as one run, to stand in an isolate that the template gives it."""
    return format_html_join("", "{}", ((_part(part),) for part in value.parts))


@register.simple_tag
def lines(value: Value, kind: str = "v", direction: str = "ltr") -> SafeString:
    """The lines of a longer text, as items of a numbered list."""
    drawn = ((kind, direction, _draw(line)) for line in value.lines)
    return format_html_join("", '<li><bdi class="{}" dir="{}">{}</bdi></li>', drawn)


def _draw(several: tuple[Piece, ...]) -> SafeString:
    # Nearly all are one run of plain text, and a page may hold hundreds.
    match several:
        case (Piece(parts=(Part(text=text, title=None, poses=None),), alone=False),):
            return conditional_escape(text)
    return format_html_join("", "{}", ((_piece(piece),) for piece in several))


def _piece(piece: Piece) -> SafeString:
    text = format_html_join("", "{}", ((_part(part),) for part in piece.parts))
    return format_html('<bdi dir="ltr">{}</bdi>', text) if piece.alone else text


def _part(part: Part) -> str:
    if part.poses is not None:
        return format_html('<mark title="{}">{}</mark>', part.poses, part.text)
    if part.title is None:
        return part.text
    return format_html('<span class="cp" title="{}" dir="ltr">{}</span>', part.title, part.text)

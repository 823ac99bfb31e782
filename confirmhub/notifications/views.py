"""Where a person says how they want to be told, and when not."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from confirmhub import display
from confirmhub.notifications import trials
from confirmhub.notifications.channels.mail import folder
from confirmhub.notifications.channels.webhook import new_secret
from confirmhub.notifications.forms import ADDRESSES, MOST, ZONES, DestinationForm, QuietForm
from confirmhub.notifications.models import Destination, QuietHours, Via

USUAL = {"starts": "22:00", "ends": "07:00", "zone": "UTC"}


@dataclass(frozen=True, slots=True)
class _Line:
    """One destination on the page."""

    number: int
    channel: str
    where: str
    """Of a URL its host and end, since the whole may be a key. ASCII, since no other is stored."""

    is_on: bool
    sent: str
    failure: str
    has_secret: bool
    has_old_secret: bool


@require_safe
@login_required
def notices(request: HttpRequest) -> HttpResponse:
    """The page."""
    return _page(request)


@require_POST
@login_required
def add(request: HttpRequest) -> HttpResponse:
    """Add a destination, and try it if that is asked. Its secret, where it has one, is shown this once."""
    user = _person(request)
    form = DestinationForm(request.POST)
    if not form.is_valid():
        return _page(request, way=form)
    channel, address = form.cleaned_data["channel"], form.cleaned_data["address"]
    secret = new_secret() if channel == Via.WEBHOOK else ""
    with transaction.atomic():
        # Held, so that the number of them holds.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if user.destinations.count() >= MOST:
            form.add_error(None, f"You have {MOST}: remove one first.")
            return _page(request, way=form)
        destination, made = Destination.objects.get_or_create(
            user=user,
            channel=channel,
            address=address,
            defaults={"secrets": secret or form.cleaned_data["token"]},
        )
    if not made:
        form.add_error("address", "That one is there already.")
        return _page(request, way=form)
    if request.POST.get("do") == "try":
        trials.ask(destination=destination)
        return _page(request, tried=True)
    return _page(request, secret=secret) if secret else redirect("notices:page")


@require_POST
@login_required
def change(request: HttpRequest, number: int) -> HttpResponse:
    """Try, turn on or off, or remove one destination, or give it another secret."""
    found = Destination.objects.filter(pk=number, user=_person(request))
    destination = found.first()
    if destination is None:
        raise Http404
    secrets = destination.secret_list
    match request.POST.get("do"):
        case "try":
            trials.ask(destination=destination)
            return _page(request, tried=True)
        case "on" | "off" as state:
            found.update(is_active=state == "on")
        case "remove":
            found.delete()
        case "rotate" if destination.channel == Via.WEBHOOK:
            secret = new_secret()
            # Both sign until the old one is dropped, so that the receiver can change over in between.
            found.update(secrets="\n".join((secret, *secrets[:1])))
            return _page(request, secret=secret)
        case "drop" if destination.channel == Via.WEBHOOK:
            found.update(secrets=secrets[0])
        case _:
            raise BadRequest
    return redirect("notices:page")


@require_POST
@login_required
def quiet(request: HttpRequest) -> HttpResponse:
    """Set the quiet hours, or end them."""
    user = _person(request)
    if request.POST.get("do") == "end":
        QuietHours.objects.filter(user=user).delete()
        return redirect("notices:page")
    form = QuietForm(request.POST)
    if not form.is_valid():
        return _page(request, hours=form)
    QuietHours.objects.update_or_create(user=user, defaults=form.cleaned_data)
    return redirect("notices:page")


def _page(
    request: HttpRequest,
    *,
    way: DestinationForm | None = None,
    hours: QuietForm | None = None,
    secret: str = "",
    tried: bool = False,
) -> HttpResponse:
    """The page, with what was typed into a form that is refused."""
    user = _person(request)
    rows = list(user.destinations.all())
    lines = [_line(row) for row in rows]
    found = QuietHours.objects.filter(user=user).first()
    quiet = (
        {"starts": f"{found.starts:%H:%M}", "ends": f"{found.ends:%H:%M}", "zone": found.zone}
        if found
        else None
    )
    files = folder()
    refused = way or hours
    context = {
        "lines": lines,
        "all_off": not any(line.is_on for line in lines),
        "mail_is_tried_below": any(row.channel == Via.EMAIL for row in rows),
        "mail": user.email and display.text(user.email),
        "mail_folder": files and display.text(files),
        "channels": Via.choices,
        "addresses": [(channel.value, words) for channel, words in ADDRESSES.items()],
        "form": refused,
        "way": way or DestinationForm(initial={"channel": Via.EMAIL}),
        "hours": hours or QuietForm(initial=quiet or USUAL),
        "secret": secret,
        "tried": tried,
        "quiet": quiet,
        "zones": ZONES,
    }
    return render(request, "notifications/account.html", context, status=400 if refused else 200)


def _line(row: Destination) -> _Line:
    parts = urlsplit(row.address)
    return _Line(
        number=row.pk,
        channel=Via(row.channel).label,
        where=f"{parts.netloc}/\u2026{row.address[-4:]}" if row.address else "",
        is_on=row.is_active,
        sent=f"{row.sent_at:%Y-%m-%d %H:%M} UTC" if row.sent_at else "",
        failure=row.failure and display.text(row.failure),
        has_secret=row.channel == Via.WEBHOOK,
        has_old_secret=row.channel == Via.WEBHOOK and len(row.secret_list) > 1,
    )


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user

"""What the review's pages say of a row, as plain values. Every text from outside passes `display` here."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from confirmhub import display
from confirmhub.confirmations.actions import Json
from confirmhub.confirmations.models import Confirmation
from confirmhub.oauth import clients
from confirmhub.oauth.clients import ClientLabel

# Characters of a value in a list; the row's own page shows it whole.
SHORT = 80

NONE = "-"  # where there is nothing to say


def when(at: dt.datetime | None) -> str:
    """A time with its zone, to the second."""
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}" if at else NONE


def ago(length: dt.timedelta) -> str:
    """How long something takes or took, in its largest unit: `40 s`, `8 min`, `3 h`, `2 d`."""
    return _parts(length)[0]


def exactly(length: dt.timedelta) -> str:
    """How long something takes, to the second: `1 min 30 s`."""
    return " ".join(_parts(length))


def text(value: str) -> str:
    """One text whole, and a dash for none."""
    return display.text(value) if value else NONE


def hosts(client_ids: Iterable[str]) -> dict[str, str]:
    """Who each of these programs is, as far as it was verified, in one query."""
    labels = clients.describe_all(client_ids=set(client_ids))
    return {client_id: host(client_id, label) for client_id, label in labels.items()}


def host(client_id: str, label: ClientLabel) -> str:
    """Who one program is."""
    # A client that we do not know is named by its id: for operators, "unknown" would hide who it was.
    named = label.host if label.since or label.verified else client_id
    if label.is_service:
        named = f"{label.name} ({label.host})"  # both are an operator's own words
    elif label.verified and label.since:
        named = f"{named} (verified)"
    return display.short(named, SHORT)


def status(row: Confirmation) -> str:
    """Where it stands, marked for the stylesheet."""
    stands = str(row.effective_status)
    return format_html('<span class="status {}">{}</span>', stands, stands)


def arguments(row: Confirmation) -> list[tuple[str, str, list[str]]]:
    """Each argument: its name, its value, and what is odd about either, in words."""
    return [_argument(key, item) for key, item in row.argument_items]


def pairs(several: Iterable[tuple[str, str]]) -> str:
    """Names with their values, one below the other. All of it has been rendered."""
    several = list(several)
    if not several:
        return NONE
    return format_html_join("", '<div class="pair"><b>{}</b> <bdi dir="ltr">{}</bdi></div>', several)


def from_left(rendered: str) -> str:
    """A name or an address, which reads from the left whatever it holds."""
    return format_html('<bdi dir="ltr">{}</bdi>', rendered)


def flagged(several: Iterable[tuple[str, str, list[str]]]) -> str:
    """Arguments, each with its remarks below it."""
    drawn = (
        (key, value, format_html_join("", '<p class="flag">{}</p>', ((note,) for note in notes)))
        for key, value, notes in several
    )
    rows = '<div class="pair"><b>{}</b> <bdi dir="ltr">{}</bdi>{}</div>'
    return format_html_join("", rows, drawn) or NONE


def names(subjects: Iterable[str]) -> dict[str, str]:
    """The sign-in names of these accounts, and of services what operators called them, by subject.

    One query for people, and one for services, where there are any.
    """
    subjects = set(subjects)
    keys = [int(each) for each in subjects if each.isascii() and each.isdigit() and len(each) < 10]
    people = User.objects.filter(pk__in=keys) if keys else ()
    services = clients.service_names(subjects=subjects)
    return {str(person.pk): display.text(person.get_username()) for person in people} | {
        subject: display.text(name) for subject, name in services.items()
    }


def _argument(key: str, item: Json) -> tuple[str, str, list[str]]:
    raw = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    flags = (*display.show(key).flags, *display.show(raw).flags)
    return display.text(key), display.text(raw), [flag.message for flag in flags if flag.level == "warn"]


def _parts(length: dt.timedelta) -> list[str]:
    seconds = max(0, int(length.total_seconds()))
    parts = []
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        number, seconds = divmod(seconds, unit)
        if number:
            parts.append(f"{number} {name}")
    return parts or ["0 s"]

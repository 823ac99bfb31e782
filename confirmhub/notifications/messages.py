"""What a notice says. Words of ours, and values that are shown as on every other surface.

A message names who asks, what kind of action, until when, and where to decide. The arguments stay on
the page: they may be secret, they would be cut, and a mail program makes links of what they hold.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.template.loader import render_to_string

from confirmhub import display
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.confirmations.screen import check_value
from confirmhub.oauth import clients

LIMIT = 100  # characters of one shown value

ASKED = "A confirmation waits for your decision"
SETTLED = {
    "approved": "A confirmation was given",
    "redeemed": "A confirmation was given",
    "denied": "A confirmation was denied",
    "cancelled": "A confirmation was withdrawn",
    "revoked": "An approval was revoked",
    "expired": "A confirmation ran out of time",
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message to one person, ready for a channel."""

    id: str
    """The same for each attempt, so that a receiver can tell a repetition (RFC 5322 section 3.6.4)."""

    subject: str
    """Our words and eight hex digits alone: nothing that an agent wrote gets near a header."""

    text: str
    html: str


def compose(*, notice: LeasedNotice, confirmation: Confirmation, recipient: User) -> Message:
    """Write the message of a notice."""
    heading = ASKED if notice.kind == "asked" else SETTLED[confirmation.effective_status]
    check = check_value(confirmation.view_digest)
    context = {
        "heading": heading,
        "asked": notice.kind == "asked",
        "rows": _rows(confirmation, check),
        "link": f"{settings.PUBLIC_URL}/confirm/{confirmation.id}",
        "recipient": display.short(recipient.get_username(), LIMIT),
    }
    return Message(
        id=f"<{confirmation.id}.{notice.id}@{urlsplit(settings.PUBLIC_URL).hostname}>",
        subject=f"confirmhub: {heading} ({check})",
        text=render_to_string("notifications/notice.txt", context),
        html=render_to_string("notifications/notice.html", context),
    )


def _rows(confirmation: Confirmation, check: str) -> list[tuple[str, str]]:
    client = clients.describe(client_id=confirmation.requester_client_id)
    # The host alone: what a client calls itself is its own claim, and belongs where the page says so.
    host = display.short(client.host, LIMIT) + ("" if client.verified else " (not verified)")
    return [
        ("Who asks", host),
        ("On behalf of", _name_of(confirmation.requester_subject)),
        ("Action", display.short(confirmation.action, LIMIT)),
        ("Asked at", _time(confirmation.requested_at)),
        ("Decide by", _time(confirmation.decide_by)),
        ("Check value", check),
    ]


def _name_of(subject: str) -> str:
    user = User.objects.filter(pk=subject).first() if subject.isdigit() else None
    return display.short(user.get_username() if user else subject, LIMIT)


def _time(at: dt.datetime) -> str:
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"

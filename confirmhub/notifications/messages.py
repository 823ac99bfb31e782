"""What a notice says. Words of ours, and values that are shown as on every other surface.

A message names who asks, what kind of action, until when, and where to decide. The arguments stay on
the page unless the operator lets them out: they may be secret, they would be cut, and a mail program
makes links of what they hold.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.template.loader import render_to_string

from confirmhub import display
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.confirmations.screen import check_value
from confirmhub.confirmations.sending import Kind
from confirmhub.notifications import arguments
from confirmhub.notifications.times import stamp
from confirmhub.oauth import clients

LIMIT = 100  # characters of one shown value

ASKING = {
    Kind.ASKED: "A confirmation waits for your decision",
    Kind.REMINDER: "Time runs out: a confirmation waits",
    Kind.ESCALATED: "A confirmation was passed on to you",
}
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

    webhook_id: str
    """The same in the alphabet of a webhook's id."""

    thread: str
    """What all messages about one confirmation share, as a mail writes it."""

    kind: str
    at: dt.datetime
    heading: str
    check: str
    rows: tuple[tuple[str, str], ...]
    """Pairs of our label and a value that is fit to be shown."""

    link: str
    invitation: str
    """Our words for the link."""

    asked: bool
    """Whether it asks for a decision."""

    recipient: str
    data: dict[str, object]
    """The same for programs."""

    @property
    def subject(self) -> str:
        """Our words and eight hex digits alone: nothing that an agent wrote gets near a header."""
        return f"confirmhub: {self.heading} ({self.check})" if self.check else f"confirmhub: {self.heading}"

    @property
    def thread_id(self) -> str:
        return self.thread.strip("<>").partition("@")[0]

    @property
    def text(self) -> str:
        return render_to_string("notifications/notice.txt", self._context())

    @property
    def html(self) -> str:
        return render_to_string("notifications/notice.html", self._context())

    def _context(self) -> dict[str, object]:
        return {
            "heading": self.heading,
            "rows": self.rows,
            "invitation": self.invitation,
            "link": self.link,
            "recipient": self.recipient,
            "check": self.check,
        }


class Names:
    """What clients and people are called, each asked for once. For the messages of one moment."""

    def __init__(self) -> None:
        self.client = cache(self._client)
        self.person = cache(self._person)

    def _client(self, client_id: str) -> str:
        client = clients.describe(client_id=client_id)
        # The host alone: what a client calls itself is its own claim, and belongs where the page says so.
        return display.short(client.host, LIMIT) + ("" if client.verified else " (not verified)")

    def _person(self, subject: str) -> str:
        key = int(subject) if subject.isdigit() and len(subject) < 10 else 0
        name = User.objects.filter(pk=key).values_list("username", flat=True).first() if key else None
        name = name or clients.service_names(subjects=[subject]).get(subject)
        return display.short(name or subject, LIMIT)


def compose(
    *, notice: LeasedNotice, confirmation: Confirmation, recipient: User, names: Names | None = None
) -> Message:
    """Write the message of a notice."""
    kind = Kind(notice.kind)
    asked = kind in ASKING
    heading = ASKING[kind] if asked else SETTLED[confirmation.effective_status]
    link = f"{settings.PUBLIC_URL}/confirm/{confirmation.id}"
    facts = _facts(confirmation, names or Names(), asked=asked)
    data = {
        "confirmation": str(confirmation.id),
        "status": str(confirmation.effective_status),
        "link": link,
        **{_key(label): stamp(fact) if isinstance(fact, dt.datetime) else fact for label, fact in facts},
    }
    lines = arguments.lines(confirmation)
    return Message(
        id=f"<{confirmation.id}.{notice.id}@{_host()}>",
        webhook_id=f"notice_{confirmation.id.hex}_{notice.id}",
        thread=f"<{confirmation.id.hex}@{_host()}>",
        kind=str(kind),
        at=_since(kind, confirmation),
        heading=heading,
        check=check_value(confirmation.view_digest),
        rows=(
            *((label, _time(fact) if isinstance(fact, dt.datetime) else fact) for label, fact in facts),
            *(("Argument", line) for line in lines),
        ),
        link=link,
        invitation="Read it whole and decide" if asked else "See what became of it",
        asked=asked,
        recipient=display.short(recipient.get_username(), LIMIT),
        data=data | ({"arguments": lines} if settings.NOTICE_ARGUMENTS else {}),
    )


def compose_trial(*, number: int, recipient: User) -> Message:
    """Write the message that the button on the account page sends."""
    link = f"{settings.PUBLIC_URL}/account/notices"
    return Message(
        id=f"<trial.{number}@{_host()}>",
        webhook_id=f"trial_{number}",
        thread=f"<trial@{_host()}>",
        kind="trial",
        at=dt.datetime.now(dt.UTC),
        heading="This is how a notice reaches you",
        check="",
        rows=(("Asked for by", "you, on your account page"),),
        link=link,
        invitation="Your notices",
        asked=False,
        recipient=display.short(recipient.get_username(), LIMIT),
        data={"link": link},
    )


def _facts(
    confirmation: Confirmation, names: Names, *, asked: bool
) -> tuple[tuple[str, str | dt.datetime], ...]:
    settled_at = confirmation.settled_at or confirmation.decide_by
    return (
        ("Who asks", names.client(confirmation.requester_client_id)),
        ("On behalf of", names.person(confirmation.requester_subject)),
        ("Action", display.short(confirmation.action, LIMIT)),
        ("Asked at", confirmation.requested_at),
        ("Decide by", confirmation.decide_by) if asked else ("Settled at", settled_at),
        ("Check value", check_value(confirmation.view_digest)),
    )


def _since(kind: Kind, confirmation: Confirmation) -> dt.datetime:
    """When what the notice tells of happened, as far as the row says."""
    moments = {
        Kind.ASKED: confirmation.requested_at,
        Kind.REMINDER: confirmation.reminded_at,
        Kind.ESCALATED: confirmation.escalated_at,
    }
    return moments.get(kind) or confirmation.settled_at or confirmation.requested_at


def _key(label: str) -> str:
    return label.lower().replace(" ", "_")


def _host() -> str:
    return urlsplit(settings.PUBLIC_URL).hostname or ""


def _time(at: dt.datetime) -> str:
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"

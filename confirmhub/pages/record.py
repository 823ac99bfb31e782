"""The log of a confirmation in the words of the receipt: people and programs by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from confirmhub.confirmations.models import Event
from confirmhub.pages import askers, values, words
from confirmhub.pages.askers import Asker
from confirmhub.pages.values import Value
from confirmhub.pages.words import Moment

# Who did something, as the ledger writes it into the log.
_ACTOR = re.compile(r"(?:client (?P<client>.+) for )?user (?P<subject>[0-9]+|client:.+)", re.DOTALL)

_KINDS = {
    "requested": "asked",
    "approve": "approved",
    "deny": "denied",
    "denied": "denied",
    "allow": "allowed without asking anybody",
    "cancelled": "withdrawn",
    "revoked": "taken back",
    "expired": "expired",
    "redeemed": "used",
    "refused": "use refused",
    "succeeded": "reported as done",
    "failed": "reported as failed",
    "reminded": "reminder sent",
    "escalated": "passed on",
    "unsent": "notice not delivered",
}
# The actors that are neither a person nor a program. What the clock and the outbox do, nobody did.
_OURS = {"clock": "", "executor": "the program that did it", "outbox": ""}
_RULE = "policy "


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the log."""

    what: str
    by: str
    """Who did it, in our words: before the name of `actor`, or alone."""
    actor: Value | None
    account: Value | None
    at: Moment


def happenings(events: Sequence[Event], *, requester: Asker, viewer: User) -> list[Happening]:
    """The lines of a log. A name may change, so the log itself holds the number of the account."""
    matches = [match for event in events if (match := _ACTOR.fullmatch(event.actor))]
    names = askers.names({match["subject"] for match in matches}, viewer=viewer)
    return [_happening(event, requester=requester, names=names) for event in events]


def _happening(event: Event, *, requester: Asker, names: dict[str, str]) -> Happening:
    what, at = _KINDS.get(event.kind, event.kind), words.moment(event.at)
    if event.actor in _OURS:
        return Happening(what, _OURS[event.actor], None, None, at)
    if event.actor.startswith(_RULE):
        return Happening(what, "the rule", values.value(event.actor.removeprefix(_RULE)), None, at)
    match = _ACTOR.fullmatch(event.actor)
    if not match:
        return Happening(what, "", values.value(event.actor), None, at)
    subject = match["subject"]
    person = None
    if not askers.is_service(subject):
        person = values.value(names.get(subject, f"account {subject}, which is no longer here"))
    if not match["client"]:
        return Happening(what, "", person, None, at)
    # A client that we no longer know has no host to show.
    client = requester.host if requester.since or requester.ours else values.value(match["client"])
    return Happening(what, "", client, person, at)

"""Who asks, and for whom: programs by what we know of them, people by their sign-in names."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from confirmhub.oauth import clients
from confirmhub.pages import values, words
from confirmhub.pages.values import Value


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks. `host` is what was verified, or where its answers go; `name` is its own word for itself."""

    host: Value
    verified: bool
    name: Value | None
    redirect: Value | None
    since: str
    ours: bool
    service: bool = False
    """An operator has set it up; its host is what they wrote down."""


def asker(client_id: str) -> Asker:
    """Who this client is, as far as we know it."""
    return askers({client_id})[client_id]


def askers(client_ids: set[str]) -> dict[str, Asker]:
    """Who these clients are, in one query."""
    labels = clients.describe_all(client_ids=client_ids)
    return {client_id: _asker(client_id, label) for client_id, label in labels.items()}


def names(subjects: set[str], *, viewer: User) -> dict[str, str]:
    """The sign-in names of these accounts, by subject, in at most one query."""
    mine = str(viewer.pk)
    keys = [
        int(subject)
        for subject in subjects - {mine}
        if subject.isascii() and subject.isdigit() and len(subject) < 19
    ]
    others = User.objects.filter(pk__in=keys) if keys else ()
    return {mine: viewer.get_username()} | {str(user.pk): user.get_username() for user in others}


def account(confirmation: Confirmation, *, viewer: User, names: dict[str, str]) -> Value | None:
    """The account that is acted for; None where it is the viewer's own, or a program acts for itself."""
    subject = confirmation.requester_subject
    if subject == str(viewer.pk) or is_service(subject):
        return None
    return values.value(names.get(subject, f"account {subject}"))


def is_service(subject: str) -> bool:
    """Whether this subject is a program that acts for itself, and no person."""
    return subject.startswith(clients.SERVICE)


def _asker(client_id: str, label: clients.ClientLabel) -> Asker:
    if client_id == clients.OURSELVES:
        return Asker(values.value("confirmhub"), verified=True, name=None, redirect=None, since="", ours=True)
    return Asker(
        host=values.value(label.host),
        verified=label.verified,
        name=values.value(label.name) if label.name else None,
        redirect=values.value(label.redirect) if label.redirect else None,
        since=words.day(label.since) if label.since else "",
        ours=False,
        service=label.is_service,
    )

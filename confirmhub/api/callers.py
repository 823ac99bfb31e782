"""For whom a caller speaks: a person's program for that person, a service for itself or whom it names."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import User

from confirmhub.confirmations import queries
from confirmhub.confirmations.errors import PolicyDenies
from confirmhub.confirmations.principals import Principal
from confirmhub.oauth.bearer import Bearer

UNKNOWN = (
    "on_behalf_of names nobody who can sign in here. It is the user name that they sign in with, exactly."
    " Without it, the people whom a rule names decide."
)


def asking(*, bearer: Bearer, on_behalf_of: str | None) -> Principal:
    """The principal that asks.

    Raises:
        PolicyDenies: A program names somebody else than its own person, or there is no such person.
    """
    if on_behalf_of is None:
        return bearer.principal
    if not bearer.is_service:
        raise PolicyDenies("A program asks for the person who signed in; only a service names one.")
    person = User.objects.filter(username=on_behalf_of, is_active=True).first()
    if person is None:
        raise PolicyDenies(UNKNOWN)
    return Principal(client_id=bearer.principal.client_id, subject=str(person.pk))


def holding(*, bearer: Bearer, confirmation_id: uuid.UUID) -> Principal:
    """The principal that this confirmation belongs to, if the caller speaks for it.

    Raises:
        NotFound: No such confirmation, or not theirs.
    """
    if not bearer.is_service:
        return bearer.principal
    return queries.requester_of(confirmation_id=confirmation_id, client_id=bearer.principal.client_id)

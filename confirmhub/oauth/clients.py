"""How a client is named to people: by what we know of it first, by its own words last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from confirmhub.oauth import redirects
from confirmhub.oauth.models import Client

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime


SERVICE = "client:"  # before its client id, the subject of a service that asks for nobody but itself
OURSELVES = "confirmhub:try"  # asks the rehearsal of the first page; no client of OAuth has such an id


@dataclass(frozen=True, slots=True)
class ClientLabel:
    """What a page may say about a client. `name` and `redirect` are the client's own words."""

    host: str
    """The host whose certificate we checked, or else the host and port of the redirect URI."""

    verified: bool
    """Whether the program proved that it speaks for `host`."""

    name: str
    redirect: str
    since: datetime | None
    is_service: bool = False
    """Whether an operator has set it up, to act for itself; `host` is what they wrote down."""


ITSELF = ClientLabel(host="confirmhub itself", verified=True, name="", redirect="", since=None)
UNKNOWN = ClientLabel(host="unknown", verified=False, name="", redirect="", since=None)


def describe(*, client_id: str) -> ClientLabel:
    """The label of any client id, also of one that we do not know."""
    return describe_all(client_ids=[client_id])[client_id]


def describe_all(*, client_ids: Collection[str]) -> dict[str, ClientLabel]:
    """The labels of these, each as `describe` has it, in at most one query."""
    known = {each for each in client_ids if each.isascii() and each.isprintable() and each != OURSELVES}
    labels = dict.fromkeys(client_ids, UNKNOWN)
    if known:
        labels |= {found.client_id: label(found) for found in Client.objects.filter(client_id__in=known)}
    if OURSELVES in labels:
        labels[OURSELVES] = ITSELF
    return labels


def service_names(*, subjects: Collection[str]) -> dict[str, str]:
    """What operators called the services behind these subjects, by subject, in at most one query.

    People are left out, and programs that nobody here has named.
    """
    ids = {each: each.removeprefix(SERVICE) for each in subjects if each.startswith(SERVICE)}
    labels = describe_all(client_ids=set(ids.values()))
    named = {each: labels[client_id] for each, client_id in ids.items()}
    return {each: label.name for each, label in named.items() if label.is_service and label.name}


def label(client: Client, *, redirect: str = "") -> ClientLabel:
    """The label of `client`, with the redirect URI it uses now, or else its first."""
    uri = redirect or next(iter(client.redirect_uris.split()), "")
    by_document = client.registration_source == Client.RegistrationSource.CIMD
    # A service proves with its secret that it is the one whose audience an operator wrote down.
    verified = by_document or client.is_service
    parts = redirects.split(client.client_id if by_document else client.audience or uri)
    return ClientLabel(
        host=(parts.netloc if parts else "") or "unknown",
        verified=verified,
        name=client.name,
        redirect=uri,
        since=client.created,
        is_service=client.is_service,
    )

"""How a client is named to people: by what we know of it first, by its own words last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from confirmhub.oauth import redirects
from confirmhub.oauth.models import Client

if TYPE_CHECKING:
    from datetime import datetime


OURSELVES = "confirmhub:try"  # asks the rehearsal of the first page


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


def describe(*, client_id: str) -> ClientLabel:
    """The label of any client id, also of one that we do not know."""
    if client_id == OURSELVES:
        return ClientLabel(host="confirmhub itself", verified=True, name="", redirect="", since=None)
    known = client_id.isascii() and client_id.isprintable()
    client = Client.objects.filter(client_id=client_id).first() if known else None
    if client is None:
        return ClientLabel(host="unknown", verified=False, name="", redirect="", since=None)
    return label(client)


def label(client: Client, *, redirect: str = "") -> ClientLabel:
    """The label of `client`, with the redirect URI it uses now, or else its first."""
    uri = redirect or next(iter(client.redirect_uris.split()), "")
    verified = client.registration_source == Client.RegistrationSource.CIMD
    parts = redirects.split(client.client_id if verified else uri)
    return ClientLabel(
        host=(parts.netloc if parts else "") or "unknown",
        verified=verified,
        name=client.name,
        redirect=uri,
        since=client.created,
    )

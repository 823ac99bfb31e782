"""From a bearer token to who is calling. Nothing is cached, so a revocation counts at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models.functions import Now

from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import scopes
from confirmhub.oauth.models import AccessToken
from confirmhub.oauth.tokens import digest

if TYPE_CHECKING:
    from datetime import datetime

MAX_LENGTH = 200  # characters; ours have 48


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token that was checked, and what it is good for."""

    principal: Principal
    scopes: frozenset[str]
    """As granted; `scopes.expand` gives what they imply."""

    expires_at: datetime
    issuer: str


def find(*, token: str) -> Bearer | None:
    """Whose token this is, or None if it is not to be accepted, for whatever reason.

    Accepted is a token of an active person and a client that is not blocked, unexpired by the
    database's clock, for exactly our resource (RFC 8707), with the base scope. One query.
    """
    if not 0 < len(token) <= MAX_LENGTH or not token.isascii():
        return None
    row = (
        AccessToken.objects.select_related("user", "application")
        .filter(
            token_checksum=digest(token),
            expires__gt=Now(),
            user__is_active=True,
            application__blocked=False,
        )
        .first()
    )
    if row is None or row.resource != [settings.MCP_RESOURCE]:
        return None
    granted = frozenset(row.scope.split())
    if not scopes.expand(granted).issuperset(scopes.LEAST):
        return None
    return Bearer(
        principal=Principal(client_id=row.application.client_id, subject=str(row.user.pk)),
        scopes=granted,
        expires_at=row.expires,
        issuer=settings.ISSUER,
    )

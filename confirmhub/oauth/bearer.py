"""From a bearer token to who is calling. Nothing is cached, so a revocation counts at once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import scopes
from confirmhub.oauth.models import AccessToken
from confirmhub.oauth.tokens import digest

MAX_LENGTH = 200  # characters; ours have 48
NOTED_EVERY = timedelta(minutes=5)  # how exactly `Connection.last_used_at` is known

_OF_A_PERSON = Q(is_service=False, user__is_active=True)
_OF_A_SERVICE = Q(is_service=True, application__authorization_grant_type="client-credentials")


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token that was checked, and what it is good for."""

    principal: Principal
    scopes: frozenset[str]
    """As granted; `scopes.expand` gives what they imply."""

    expires_at: datetime
    issuer: str
    audience: str
    """The one resource that the token is for (RFC 8707)."""

    is_service: bool
    """Whether a service calls for itself, not a program for a person."""


def find(*, token: str) -> Bearer | None:
    """Whose token this is, for MCP: a person's, and for the MCP endpoint; or None, for whatever reason.

    Accepted is a token of an active person and a client that is not blocked, unexpired by the
    database's clock, for exactly our resource, with the least scope.
    """
    return _read(_row(token, _OF_A_PERSON))


def find_for_api(*, token: str) -> Bearer | None:
    """Whose token this is, for the API: as `find`, or a service's, for its own audience.

    A service's token is good for what the operator lets the service do now, and for no other audience
    than the one it has now.
    """
    return _read(_row(token, _OF_A_PERSON | _OF_A_SERVICE))


def find_all_for_api(*, tokens: Collection[str]) -> dict[str, Bearer]:
    """Of these tokens, those that `find_for_api` finds, in one query."""
    usable = {digest(token): token for token in tokens if _may_be_one(token)}
    found = {usable[row.token_checksum]: _read(row) for row in _usable(_OF_A_PERSON | _OF_A_SERVICE, usable)}
    return {token: bearer for token, bearer in found.items() if bearer is not None}


def _row(token: str, whose: Q) -> AccessToken | None:
    return _usable(whose, [digest(token)]).first() if _may_be_one(token) else None


def _may_be_one(token: str) -> bool:
    return 0 < len(token) <= MAX_LENGTH and token.isascii()


def _usable(whose: Q, checksums: Collection[str]) -> QuerySet[AccessToken]:
    found: QuerySet[AccessToken] = AccessToken.objects.select_related("user", "application").filter(
        whose, token_checksum__in=checksums, expires__gt=Now(), application__blocked=False
    )
    return found


def _read(row: AccessToken | None) -> Bearer | None:
    if row is None:
        return None
    client = row.application
    audience = client.audience if row.is_service else settings.MCP_RESOURCE
    if not audience or row.resource != [audience]:
        return None
    granted = frozenset(row.scope.split())
    if row.is_service:
        granted &= frozenset(client.service_scope.split())
    if not scopes.expand(granted).issuperset(scopes.LEAST):
        return None
    _note_use(row)
    return Bearer(
        principal=Principal(
            client_id=client.client_id,
            subject=f"client:{client.client_id}" if row.is_service else str(row.user.pk),
        ),
        scopes=granted,
        expires_at=row.expires,
        issuer=settings.ISSUER,
        audience=audience,
        is_service=row.is_service,
    )


def _note_use(row: AccessToken) -> None:
    now = timezone.now()
    if row.used_at is None or row.used_at <= now - NOTED_EVERY:
        AccessToken.objects.filter(pk=row.pk).update(used_at=now)

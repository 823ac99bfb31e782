"""From a bearer token to who is calling. Nothing is cached, so a revocation counts at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils import timezone

from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import scopes
from confirmhub.oauth.clients import SERVICE
from confirmhub.oauth.models import AccessToken
from confirmhub.oauth.tokens import digest

MAX_LENGTH = 200  # characters; ours have 48
NOTED_EVERY = timedelta(minutes=5)  # how exactly `Connection.last_used_at` is known

_CHECKSUMS: list[str] = []  # where those that are asked for go
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


def find_for_api(*, token: str) -> Bearer | None:
    """Whose token this is, for the API; or None, for whatever reason.

    Accepted is a token of an active person and a client that is not blocked, unexpired by the
    database's clock, for exactly our MCP endpoint, with the least scope. Or a service's, which is good for
    what the operator lets the service do now, and for no other audience than the one it has now.
    """
    if not _may_be_one(token):
        return None
    found = _usable(_OF_A_PERSON | _OF_A_SERVICE, [digest(token)])
    bearers, used = read(tokens=[token], rows=found)
    if used:
        note_use(ids=used)
    return bearers.get(token)


def statement(*, tokens: Collection[str], for_api: bool) -> tuple[str, list[Any]]:
    """The query of `find_for_api` for all of these at once, or for MCP, which serves no service.

    For who runs it elsewhere, and gives what it finds to `read`.
    """
    sql, values = _compiled(for_api=for_api)
    checksums = [digest(token) for token in tokens if _may_be_one(token)]
    return sql, [checksums if value is _CHECKSUMS else value for value in values]


@cache
def _compiled(*, for_api: bool) -> tuple[str, tuple[Any, ...]]:
    """Compiled once: that takes longer than running it."""
    these = RawSQL("SELECT unnest(%s::text[])", [_CHECKSUMS])
    whose = _OF_A_PERSON | _OF_A_SERVICE if for_api else _OF_A_PERSON
    compiled: tuple[str, tuple[Any, ...]] = _usable(whose, these).query.sql_with_params()
    return compiled


def read(*, tokens: Collection[str], rows: Iterable[tuple[Any, ...]]) -> tuple[dict[str, Bearer], list[int]]:
    """Whose tokens these are, by what `statement` found; and the ids to give to `note_use`."""
    checksums = {digest(token): token for token in tokens}
    found = [(row, bearer) for row in (_Row(*row) for row in rows) if (bearer := _read(row))]
    bearers = {checksums[row.checksum]: bearer for row, bearer in found}
    return bearers, [row.id for row, _ in found if _is_to_be_noted(row)]


def note_use(*, ids: Collection[int]) -> None:
    """Write down that these tokens are in use. One that somebody holds is noted at its next use."""
    free = AccessToken.objects.filter(pk__in=ids).select_for_update(skip_locked=True)
    with transaction.atomic():
        AccessToken.objects.filter(pk__in=free.values("pk")).update(used_at=timezone.now())


class _Row(NamedTuple):
    checksum: str
    id: int
    resource: list[str]
    scope: str
    is_service: bool
    expires: datetime
    used_at: datetime | None
    user_id: int | None
    client_id: str
    audience: str
    service_scope: str


_COLUMNS = (
    *("token_checksum", "pk", "resource", "scope", "is_service", "expires", "used_at", "user_id"),
    *("application__client_id", "application__audience", "application__service_scope"),
)


def _may_be_one(token: str) -> bool:
    return 0 < len(token) <= MAX_LENGTH and token.isascii()


def _usable(whose: Q, checksums: Collection[str] | RawSQL) -> QuerySet[AccessToken, tuple[Any, ...]]:
    usable = AccessToken.objects.filter(
        whose, token_checksum__in=checksums, expires__gt=Now(), application__blocked=False
    )
    found: QuerySet[AccessToken, tuple[Any, ...]] = usable.values_list(*_COLUMNS)
    return found


def _read(row: _Row) -> Bearer | None:
    audience = row.audience if row.is_service else settings.MCP_RESOURCE
    if not audience or row.resource != [audience]:
        return None
    granted = frozenset(row.scope.split())
    if row.is_service:
        granted &= frozenset(row.service_scope.split())
    if not scopes.expand(granted).issuperset(scopes.LEAST):
        return None
    return Bearer(
        principal=Principal(
            client_id=row.client_id,
            subject=f"{SERVICE}{row.client_id}" if row.is_service else str(row.user_id),
        ),
        scopes=granted,
        expires_at=row.expires,
        issuer=settings.ISSUER,
        audience=audience,
        is_service=row.is_service,
    )


def _is_to_be_noted(row: _Row) -> bool:
    return row.used_at is None or row.used_at <= timezone.now() - NOTED_EVERY

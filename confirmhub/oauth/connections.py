"""Which programs may act for a person at present, and the way to end that."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from confirmhub.confirmations import errors, ledger, queries
from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import defaults
from confirmhub.oauth.clients import ClientLabel, label
from confirmhub.oauth.models import AccessToken, Client, Code, RefreshToken
from confirmhub.oauth.scopes import SCOPES

if TYPE_CHECKING:
    from django.contrib.auth.models import User

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Connection:
    """One program that holds tokens of a person."""

    key: int
    client: ClientLabel
    scopes: tuple[str, ...]
    """In words for people."""

    last_used_at: datetime
    """When it last called, or got a token; to within five minutes (`bearer.NOTED_EVERY`)."""


def list_connections(*, user: User) -> list[Connection]:
    """The programs that can get a token for `user` now, the one that was used last first."""
    grants = RefreshToken.objects.filter(
        user=user,
        revoked__isnull=True,
        # As the toolkit has it: unused for so long, a refresh token is good no more.
        access_token__expires__gt=timezone.now() - timedelta(seconds=defaults.REFRESH_TOKEN_SECONDS),
    ).select_related("application", "access_token")
    held: dict[int, set[str]] = {}
    used: dict[int, datetime] = {}
    programs: dict[int, Client] = {}
    for grant in grants:
        key = grant.application_id
        programs[key] = grant.application
        held.setdefault(key, set()).update(grant.grant_scope.split())
        last = max(grant.created, grant.access_token.used_at or grant.created)
        used[key] = max(used.get(key, last), last)
    found = [
        Connection(
            key=key,
            client=label(program),
            scopes=tuple(words for name, words in SCOPES.items() if name in held[key]),
            last_used_at=used[key],
        )
        for key, program in programs.items()
    ]
    return sorted(found, key=lambda connection: connection.last_used_at, reverse=True)


def connected_of(*, user: User, client_ids: Collection[str]) -> set[str]:
    """Those of these programs with which `user` has not ended the connection; it may be out of use."""
    held = RefreshToken.objects.filter(user=user, revoked__isnull=True, application__client_id__in=client_ids)
    return set(held.values_list("application__client_id", flat=True))


def disconnect(*, user: User, key: int) -> None:
    """End everything that the program `key` may do for `user`, at once. None of theirs: nothing.

    Its questions are taken back with it, and so are the approvals that it has not used.
    """
    _disconnect(user, [key])


def disconnect_all(*, user: User) -> None:
    """End everything that any program may do for `user`, as `disconnect` does."""
    held = RefreshToken.objects.filter(user=user, revoked__isnull=True)
    keys = {
        *held.values_list("application_id", flat=True),
        *AccessToken.objects.filter(user=user).values_list("application_id", flat=True),
        *Code.objects.filter(user=user).values_list("application_id", flat=True),
    }
    _disconnect(user, sorted(keys))


def _disconnect(user: User, keys: list[int]) -> None:
    with transaction.atomic():
        mine = Q(user=user, application_id__in=keys)
        Code.objects.filter(mine).delete()
        end_tokens(mine)
    # After the tokens are gone for certain: nothing here may keep them alive.
    for client_id in Client.objects.filter(pk__in=keys).values_list("client_id", flat=True):
        withdraw(client_id=client_id, subject=str(user.pk), reason="The program was disconnected.")
        log.info("User %s disconnected client %s", user.pk, client_id)


def end_tokens(whose: Q) -> None:
    """Make these access tokens, and the families of these refresh tokens, good no more."""
    held = RefreshToken.objects.filter(whose, revoked__isnull=True)
    for family in set(held.values_list("token_family", flat=True)):
        RefreshToken.revoke_family(family)
    AccessToken.objects.filter(whose).delete()


def withdraw(*, client_id: str, reason: str, subject: str | None = None) -> None:
    """Take back what a program has asked, for one person or for all, and the approvals that it has not used.

    For a program that is shut out: nobody must be asked on its behalf, and nothing must wait for its return.
    `reason` is for the record, in words of ours.
    """
    for row in queries.list_open_of_client(client_id=client_id, subject=subject):
        requester = Principal(row.requester_client_id, row.requester_subject)
        try:
            _take_back(row.id, requester, reason)
        except errors.Busy:
            # Somebody is deciding on it now. The program cannot use what comes of it, and it expires.
            log.warning("Confirmation %s of client %s stays open: it is busy", row.id, client_id)
        except errors.ConfirmationError:
            pass  # it was settled, spent or overdue by now


def _take_back(confirmation_id: UUID, requester: Principal, reason: str) -> None:
    try:
        ledger.cancel(confirmation_id=confirmation_id, requester=requester, reason=reason)
    except errors.AlreadyDecided:  # approved, so there is a yes to take back
        ledger.revoke(confirmation_id=confirmation_id, revoker=requester, reason=reason)

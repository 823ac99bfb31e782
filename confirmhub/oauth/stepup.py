"""Step-up: a token that is good, but not for this, and a host that then refreshes it.

Some hosts answer the 403 challenge with a refresh, get the same scope, and give up (`oauth.md`
section 5). So the resource server marks the grant when it challenges, and the token endpoint
refuses to refresh a marked grant for a minute with an error that sends such a host to the
browser. Nothing is revoked then: who closes the tab keeps the session. Only once the wider grant has
been redeemed, the narrower one that it replaces is ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import F, Value
from django.db.models.functions import Least
from django.utils import timezone

from confirmhub.oauth.models import AccessToken, RefreshToken
from confirmhub.oauth.scopes import expand
from confirmhub.oauth.tokens import digest

if TYPE_CHECKING:
    from datetime import datetime

log = logging.getLogger(__name__)

MARK_LASTS = timedelta(seconds=60)

CONSENT_TAKES = timedelta(minutes=15)  # at most, between the challenge and the new grant

# What a replaced grant's access token still has: calls that were under way with it come to their end.
FADES_IN = timedelta(seconds=30)

# `interaction_required` is the one answer after which both kinds of host of the first TypeScript
# SDK open the browser and keep their tokens; `invalid_grant` is in RFC 6749, but loses them.
ANSWERS = ("interaction_required", "invalid_grant", "off")


def challenge_scope(*, held: Iterable[str], needed: Iterable[str]) -> str:
    """The `scope` of a 403 challenge: all of it, sorted, since some hosts ask for just that."""
    return " ".join(sorted({*held, *needed}))


def mark(*, token: str, needed: Iterable[str]) -> None:
    """Note that the grant of this access token was asked for `needed`, too."""
    marked = RefreshToken.objects.filter(
        access_token__token_checksum=digest(token), revoked__isnull=True
    ).update(stepup_scope=" ".join(sorted(needed)), stepup_at=timezone.now())
    if marked:
        log.info("A grant was asked for more scope: %s", " ".join(sorted(needed)))


def answer() -> str:
    """The OAuth error for the refresh of a marked grant; "off" to refresh as usual."""
    chosen = str(getattr(settings, "STEP_UP_ANSWER", ANSWERS[0]))
    if chosen not in ANSWERS:
        raise ValueError(f"STEP_UP_ANSWER must be one of {', '.join(ANSWERS)}")
    return chosen


def is_pending(*, grant: RefreshToken, access_token: AccessToken | None) -> bool:
    """Whether this refresh comes from a challenge, not from an expiry.

    Only a token that is still fresh can have been challenged with a 403; an ordinary refresh
    comes with one that is expired or about to.
    """
    now = timezone.now()
    if access_token is None or grant.stepup_at is None or grant.stepup_at <= now - MARK_LASTS:
        return False
    lifetime = access_token.expires - access_token.created
    if access_token.expires - now <= lifetime / 10:
        return False
    return not set(grant.stepup_scope.split()) <= set(access_token.scope.split())


def retire(*, by: RefreshToken) -> None:
    """End the grant that was challenged for more scope, now that `by`, a new grant, covers it all.

    Only where it is clear which one that is: a program may have several sessions with one person, and
    another session's grant is not replaced by this one. Call it within the transaction that made `by`.
    """
    now = timezone.now()
    covered = expand(by.grant_scope.split())
    challenged = [
        grant
        for grant in RefreshToken.objects.select_for_update(of=("self",))
        .filter(
            user=by.user,
            application=by.application,
            revoked__isnull=True,
            stepup_at__gt=now - CONSENT_TAKES,
        )
        .exclude(token_family=by.token_family)
        .order_by("pk")
        if {*grant.stepup_scope.split(), *grant.grant_scope.split()} <= covered
    ]
    if len(challenged) == 1:
        _end(challenged[0], now)


def _end(grant: RefreshToken, now: datetime) -> None:
    family = RefreshToken.objects.filter(token_family=grant.token_family)
    AccessToken.objects.filter(pk__in=family.values("access_token_id")).update(
        expires=Least(F("expires"), Value(now + FADES_IN))
    )
    family.filter(revoked__isnull=True).update(revoked=now, updated=now)
    log.info("Grant %s was replaced by a wider one", grant.token_family)

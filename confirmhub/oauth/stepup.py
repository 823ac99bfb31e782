"""Step-up: a token that is good, but not for this, and a host that then refreshes it.

Some hosts answer the 403 challenge with a refresh, get the same scope, and give up (`oauth.md`
section 5). So the resource server marks the grant when it challenges, and the token endpoint
refuses to refresh a marked grant for a minute with an error that sends such a host to the
browser. Nothing is revoked: who closes the tab keeps the session.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils import timezone

from confirmhub.oauth.models import RefreshToken
from confirmhub.oauth.tokens import digest

if TYPE_CHECKING:
    from confirmhub.oauth.models import AccessToken

log = logging.getLogger(__name__)

MARK_LASTS = timedelta(seconds=60)

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

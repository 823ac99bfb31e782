"""What the authorization server no longer needs. Run now and then; skipping it lets nobody in."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now
from oauth2_provider.models import clear_expired

from confirmhub.oauth import throttle
from confirmhub.oauth.models import AccessToken, Client, Code, RefreshToken

UNUSED_FOR = timedelta(days=7)  # a client that registered and was never consented to


def sweep() -> None:
    """Delete expired codes and tokens, throttling windows that are over, and unused clients."""
    clear_expired()
    throttle.sweep()
    sweep_clients(limit=1000)


def sweep_clients(*, limit: int) -> int:
    """Delete up to `limit` clients that registered and were not used; return how many.

    Anybody can make such rows. Clients that an operator made or blocked stay.
    """
    unused = Client.objects.filter(
        ~Exists(Code.objects.filter(application=OuterRef("pk"))),
        ~Exists(AccessToken.objects.filter(application=OuterRef("pk"))),
        ~Exists(RefreshToken.objects.filter(application=OuterRef("pk"))),
        registration_source__in=[Client.RegistrationSource.DCR, Client.RegistrationSource.CIMD],
        blocked=False,
        created__lt=Now() - UNUSED_FOR,
    )
    ids = list(unused.values_list("pk", flat=True)[:limit])
    return Client.objects.filter(pk__in=ids).delete()[0] if ids else 0

"""The rows of the authorization server: django-oauth-toolkit's models, swapped for ours.

The toolkit's views and validator write them; what we add is what it lacks: a client can be
blocked, a spent code stays to be recognised, a refresh token keeps the scope of its grant, and
tokens without a person or without an audience cannot be stored at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.lookups import Exact
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractApplication,
    AbstractGrant,
    AbstractIDToken,
    AbstractRefreshToken,
    ApplicationManager,
)

from confirmhub.oauth.redirects import is_acceptable

if TYPE_CHECKING:
    from oauthlib.common import Request

# RFC 8707: every grant is for exactly one resource. An empty list would mean "everywhere".
_ONE_RESOURCE = Exact(
    Func(F("resource"), function="jsonb_array_length", output_field=models.IntegerField()),
    1,
)


class Client(AbstractApplication):
    """A program that people let act for them: an MCP host, by registration or by its document."""

    blocked = models.BooleanField(
        default=False,
        help_text="A blocked client gets no tokens, and the ones it has stop working",
    )

    objects = ApplicationManager()

    class Meta(AbstractApplication.Meta):
        constraints: ClassVar = [
            # Consent is asked every time (`threats.md` e10): there is no client to trust blindly.
            models.CheckConstraint(name="client_never_skips_consent", condition=Q(skip_authorization=False)),
        ]

    def __str__(self) -> str:
        # Not its name, which is its own words: the admin prints this in many places as it is.
        return str(self.client_id)

    def natural_key(self) -> tuple[str]:
        return (self.client_id,)

    def is_usable(self, request: Request | None) -> bool:
        """The toolkit asks this when it issues, refreshes and accepts."""
        del request
        return not self.blocked

    def clean(self) -> None:
        super().clean()
        for uri in self.redirect_uris.split():
            if not is_acceptable(uri):
                raise ValidationError(
                    {"redirect_uris": "A redirect URI must be https, or http on a loopback host."}
                )


class Code(AbstractGrant):
    """An authorization code. It stays after its redemption, so that a replay is seen."""

    redeemed_at = models.DateTimeField(null=True)
    family = models.UUIDField(null=True)  # of the refresh tokens that came from it

    class Meta(AbstractGrant.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(
                name="code_family_iff_redeemed",
                condition=Q(redeemed_at__isnull=True, family__isnull=True)
                | Q(redeemed_at__isnull=False, family__isnull=False),
            ),
            models.CheckConstraint(name="code_has_one_resource", condition=_ONE_RESOURCE),
        ]


class AccessToken(AbstractAccessToken):
    """A bearer token, stored as its SHA-256 only."""

    class Meta(AbstractAccessToken.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(
                name="access_token_has_a_person",
                condition=Q(user__isnull=False, application__isnull=False),
            ),
            models.CheckConstraint(name="access_token_has_one_resource", condition=_ONE_RESOURCE),
            models.CheckConstraint(name="access_token_not_in_clear", condition=Q(token="")),
        ]


class RefreshToken(AbstractRefreshToken):
    """A refresh token, stored as its SHA-256 only."""

    # RFC 6749 section 6: a refresh may ask for less, and the grant stays what it was.
    grant_scope = models.TextField(default="", blank=True)

    # The resource server asked for more scope at this time (`stepup`).
    stepup_scope = models.TextField(default="", blank=True)
    stepup_at = models.DateTimeField(null=True)

    class Meta(AbstractRefreshToken.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(name="refresh_token_has_one_resource", condition=_ONE_RESOURCE),
            models.CheckConstraint(name="refresh_token_not_in_clear", condition=Q(token="")),
        ]


class IDToken(AbstractIDToken):
    """Not used, since OpenID Connect is off; swapped because the five come together."""

    class Meta(AbstractIDToken.Meta):
        pass


class Tally(models.Model):
    """How often one sender did one thing in one window of time. Written by `throttle` alone."""

    key = models.CharField(max_length=64, primary_key=True)  # SHA-256 of what, who and window
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"Tally {self.count} until {self.ends_at:%Y-%m-%d %H:%M:%S%z}"

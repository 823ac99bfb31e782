"""The rows of the authorization server: django-oauth-toolkit's models, swapped for ours.

The toolkit's views and validator write them; what we add is what it lacks: a client can be
blocked, a spent code stays to be recognised, a refresh token keeps the scope of its grant, and
tokens that name neither a person nor a service, or no audience, cannot be stored at all.
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

from confirmhub.oauth import client_secrets
from confirmhub.oauth.redirects import is_acceptable

if TYPE_CHECKING:
    from oauthlib.common import Request

# RFC 8707: every grant is for exactly one resource. An empty list would mean "everywhere".
_ONE_RESOURCE = Exact(
    Func(F("resource"), function="jsonb_array_length", output_field=models.IntegerField()),
    1,
)


# What people let act for them, and what acts for itself (RFC 6749 section 4.4).
_HOST = Q(
    authorization_grant_type=AbstractApplication.GRANT_AUTHORIZATION_CODE, audience="", service_scope=""
)
_SERVICE = Q(
    authorization_grant_type=AbstractApplication.GRANT_CLIENT_CREDENTIALS,
    client_type=AbstractApplication.CLIENT_CONFIDENTIAL,
    registration_source=AbstractApplication.RegistrationSource.MANUAL,
    redirect_uris="",
    audience__gt="",
    service_scope__gt="",
    client_secret__gt="",
)


class Client(AbstractApplication):
    """A program: an MCP host that people let act for them, or a service that acts for itself."""

    # A digest (`client_secrets`), never the secret, whatever writes it; so nothing is left to choose.
    client_secret = models.CharField(max_length=80, blank=True, default="", editable=False)
    hash_client_secret = None

    # Of a service alone, as an operator chose them: the one resource that its tokens are for (RFC
    # 8707), and the most that they may hold.
    audience = models.CharField(max_length=255, blank=True, default="")
    service_scope = models.CharField(max_length=255, blank=True, default="")

    blocked = models.BooleanField(
        default=False,
        help_text="It gets no tokens any more, and those that it has do not work.",
    )

    objects = ApplicationManager()

    class Meta(AbstractApplication.Meta):
        verbose_name = "program"
        constraints: ClassVar = [
            # Consent is asked every time (`threats.md` e10): there is no client to trust blindly.
            models.CheckConstraint(name="client_never_skips_consent", condition=Q(skip_authorization=False)),
            models.CheckConstraint(name="client_is_host_or_service", condition=_HOST | _SERVICE),
            models.CheckConstraint(
                name="client_secret_not_in_clear",
                condition=Q(client_secret="") | Q(client_secret__regex=client_secrets.STORED),
            ),
        ]

    @property
    def is_service(self) -> bool:
        return bool(self.authorization_grant_type == self.GRANT_CLIENT_CREDENTIALS)

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


class ServiceManager(ApplicationManager):
    def get_queryset(self) -> models.QuerySet[Client]:
        found: models.QuerySet[Client] = super().get_queryset()
        return found.filter(authorization_grant_type=Client.GRANT_CLIENT_CREDENTIALS)


class Service(Client):
    """The services among the clients, for the admin: they are made there and nowhere else."""

    objects = ServiceManager()

    class Meta:
        proxy = True


class AccessToken(AbstractAccessToken):
    """A bearer token, stored as its SHA-256 only."""

    # Said outright where it is issued, so that no token is without a person by accident.
    is_service = models.BooleanField(default=False)

    used_at = models.DateTimeField(null=True)  # to within `bearer.NOTED_EVERY`

    class Meta(AbstractAccessToken.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(
                name="access_token_has_a_person_or_is_a_services",
                condition=Q(application__isnull=False)
                & (
                    Q(user__isnull=False, is_service=False)
                    | Q(user__isnull=True, is_service=True, source_refresh_token__isnull=True)
                ),
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

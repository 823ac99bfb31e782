"""What may be issued, and to whom: django-oauth-toolkit's validator with its gaps closed.

oauthlib calls these methods in the order of RFC 6749. The token endpoint runs them in one
transaction (`views.Token`), so a row that is locked here stays locked until the answer.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import F
from django.utils import timezone
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749 import errors

from confirmhub.oauth import client_secrets, resources, scopes, stepup, throttle
from confirmhub.oauth.models import AccessToken, Client, Code, RefreshToken
from confirmhub.oauth.tokens import derive, digest

if TYPE_CHECKING:
    from datetime import datetime

    from oauthlib.common import Request

log = logging.getLogger(__name__)

GRACE = timedelta(seconds=30)  # a refresh, sent again within it, gets the same answer again
GRANTS = ("authorization_code", "refresh_token")  # of a program that people sign in to
SERVICE_GRANT = "client_credentials"  # of a service, which acts for itself
# A token is good for an hour, so a service that gets one for each call has it wrong, and fills the table.
SERVICE_TOKENS = throttle.Limit(what="service-token", count=60, within=timedelta(minutes=1))
S256_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # RFC 7636 section 4.2


class Validator(OAuth2Validator):
    # --- the client ---------------------------------------------------------------------------

    def _load_application(self, client_id: str | None, request: Request) -> Client | None:
        # The toolkit would fetch metadata documents here, in the middle of a transaction.
        # `documents.ensure` has done so before, where it may be done.
        known = request.client if isinstance(request.client, Client) else None
        if known is None or known.client_id != client_id:
            usable_id = client_id and client_id.isascii() and client_id.isprintable()
            known = Client.objects.filter(client_id=client_id).first() if usable_id else None
        known = known if known is not None and known.is_usable(request) else None
        request.client = known
        return known

    def _check_secret(self, provided_secret: str, stored_secret: str) -> bool:
        # A public client has none, and an empty one is no proof of anything.
        return client_secrets.matches(secret=provided_secret, kept=stored_secret)

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: Client, request: Request, *args: object
    ) -> bool:
        if client.is_service:
            return grant_type == SERVICE_GRANT
        return grant_type in GRANTS and super().validate_grant_type(
            client_id, grant_type, client, request, *args
        )

    def validate_response_type(
        self, client_id: str, response_type: str, client: Client, request: Request, *args: object
    ) -> bool:
        return response_type == "code" and super().validate_response_type(
            client_id, response_type, client, request, *args
        )

    def validate_scopes(
        self, client_id: str, wanted: list[str], client: Client, request: Request, *args: object
    ) -> bool:
        del client_id, request, args
        if client.is_service:
            return set(wanted) <= set(client.service_scope.split())
        manual = client.registration_source == Client.RegistrationSource.MANUAL
        return set(wanted) <= set(scopes.SCOPES if manual else scopes.OPEN_TO_ALL)

    # --- the authorization code ---------------------------------------------------------------

    def _create_authorization_code(
        self, request: Request, code: dict[str, str], expires: datetime | None = None
    ) -> Code:
        # RFC 9700 section 2.1.1: S256 only. `consent` has refused anything else before the page.
        if request.code_challenge_method != "S256" or not S256_CHALLENGE.fullmatch(
            request.code_challenge or ""
        ):
            raise errors.InvalidRequestError(description="PKCE with S256 is required.", request=request)
        self._bind_resource(request)
        request.nonce, request.claims = None, None  # OpenID Connect is off
        # Stored as its digest, as tokens are; the host gets the value itself from `code`.
        stored: Code = super()._create_authorization_code(
            request, {**code, "code": digest(code["code"])}, expires
        )
        return stored

    def validate_code(
        self, client_id: str, code: str, client: Client, request: Request, *args: object
    ) -> bool:
        del client_id, args
        # The loser of a race waits here, and then finds the code redeemed.
        row = (
            Code.objects.select_for_update(of=("self",))
            .select_related("user")
            .filter(code=digest(code), application=client)
            .first()
        )
        if row is None or not row.user.is_active:
            return False
        if row.redeemed_at is not None:
            # RFC 6749 section 4.1.2: a replay revokes what the code led to. Only the holder of
            # the verifier can do so; anyone may have seen the code in a redirect.
            if _verifies(request.code_verifier, row.code_challenge):
                log.warning("Code of client %s replayed; its tokens are revoked", client.client_id)
                RefreshToken.revoke_family(row.family)
            return False
        if row.is_expired():
            return False
        request.code_row = row
        request.scopes = row.scope.split()
        request.user = row.user
        return True

    def get_code_challenge(self, code: str, request: Request) -> str | None:
        del code
        return request.code_row.code_challenge or None

    def get_code_challenge_method(self, code: str, request: Request) -> str | None:
        del code
        return request.code_row.code_challenge_method or None

    def confirm_redirect_uri(
        self,
        client_id: str,
        code: str,
        redirect_uri: str,
        client: Client,
        request: Request,
        *args: object,
    ) -> bool:
        del client_id, code, client, args
        return bool(request.code_row.redirect_uri_allowed(redirect_uri))

    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Request, *args: object
    ) -> None:
        del client_id, code, args
        # The row stays, so that a replay is seen.
        row = request.code_row
        row.redeemed_at, row.family = timezone.now(), request.token_family
        row.save(update_fields=["redeemed_at", "family", "updated"])

    # --- the refresh token --------------------------------------------------------------------

    def validate_refresh_token(
        self, refresh_token: str, client: Client, request: Request, *args: object
    ) -> bool:
        # Parallel refreshes queue here; the first rotates, the others find what it issued.
        row = (
            RefreshToken.objects.select_for_update(of=("self",))
            .select_related("user", "access_token")
            .filter(token_checksum=digest(refresh_token), application=client)
            .order_by(F("revoked").desc(nulls_first=True))
            .first()
        )
        if row is None or not row.user.is_active:
            return False
        if row.revoked is None and stepup.is_pending(grant=row, access_token=row.access_token):
            self._refuse_step_up(row, request)
        again = _issued_lately(row, refresh_token, request.scope)
        if again is not None:
            request.issued, request.issued_refresh_token = again
            request.user, request.refresh_token_instance = row.user, row
            return True
        if row.revoked is not None:
            log.warning("Refresh token of client %s reused after rotation", client.client_id)
        return bool(super().validate_refresh_token(refresh_token, client, request, *args))

    def get_original_scopes(self, refresh_token: str, request: Request, *args: object) -> list[str] | str:
        # RFC 6749 section 6: what the person granted, however narrow the last refresh was.
        del refresh_token, args
        return str(request.refresh_token_instance.grant_scope)

    # --- the tokens ---------------------------------------------------------------------------

    def _save_bearer_token(self, token: dict[str, object], request: Request, *args: object) -> None:
        again = getattr(request, "issued", None)
        if again is None:
            super()._save_bearer_token(token, request, *args)
            return
        # Both values in `token` were derived, so they are the ones that were issued before.
        self._bind_resource(request)
        token["scope"] = again.scope
        token["expires_in"] = max(0, int((again.expires - timezone.now()).total_seconds()))

    def _create_access_token(
        self,
        expires: datetime,
        request: Request,
        token: dict[str, object],
        source_refresh_token: RefreshToken | None = None,
    ) -> AccessToken:
        client = request.client
        if client.is_service and throttle.count(SERVICE_TOKENS, who=client.client_id):
            raise errors.CustomOAuth2Error(
                error="temporarily_unavailable",
                description="Too many tokens. Keep one until it ends.",
                status_code=429,
                request=request,
            )
        created = AccessToken(
            user=request.user,
            application=client,
            scope=token["scope"],
            expires=expires,
            resource=request.resource,
            source_refresh_token=source_refresh_token,
            is_service=client.is_service,
        )
        self._set_token_value(created, token["access_token"])
        created.save()
        if client.is_service:
            log.info("Token for %s issued to service %s", client.audience, client.client_id)
        return created

    def _create_refresh_token(
        self,
        request: Request,
        refresh_token_code: str,
        access_token: AccessToken,
        previous_refresh_token: RefreshToken | None,
    ) -> RefreshToken:
        created: RefreshToken = super()._create_refresh_token(
            request, refresh_token_code, access_token, previous_refresh_token
        )
        created.grant_scope = (
            previous_refresh_token.grant_scope if previous_refresh_token else access_token.scope
        )
        created.save(update_fields=["grant_scope", "updated"])
        request.token_family = created.token_family
        if previous_refresh_token is None:
            stepup.retire(by=created)
        log.info(
            "Tokens for user %s issued to %s by %s, family %s",
            request.user.pk,
            request.client.client_id,
            request.grant_type,
            created.token_family,
        )
        return created

    def _check_and_set_request_resource(self, request: Request) -> None:
        self._bind_resource(request)

    def _bind_resource(self, request: Request) -> None:
        """Every grant and token is for one resource, asked for or not (RFC 8707).

        Ours; or, of a service, its own.
        """
        resource = request.client.audience if request.client.is_service else settings.MCP_RESOURCE
        asked = [value for key, value in request.decoded_body or [] if key == "resource"]
        if not asked and request.resource is not None:
            asked = request.resource if isinstance(request.resource, list) else [request.resource]
        if not all(isinstance(value, str) and resources.is_same(value, resource) for value in asked):
            raise errors.CustomOAuth2Error(
                error="invalid_target", description="Unknown resource.", request=request
            )
        request.resource = [resource]

    def _refuse_step_up(self, row: RefreshToken, request: Request) -> None:
        answer = stepup.answer()
        if answer != "off":
            raise errors.CustomOAuth2Error(
                error=answer,
                description=f"Consent is needed for: {row.stepup_scope}",
                status_code=400,
                request=request,
            )


def _issued_lately(row: RefreshToken, token: str, scope: str | None) -> tuple[AccessToken, str] | None:
    """The pair that answered this refresh, or issued this token, within the grace: to be given again.

    Of parallel requests whose access token has expired, each sends a refresh. Some send the token
    that the first of them has just spent; some already read its successor, and to rotate that again
    would take the new access token from under the others.
    """
    since = timezone.now() - GRACE
    if row.revoked is not None:
        successor = derive(kind="rt", token=token)
        # Gone if it was revoked or has itself been spent: then this is reuse.
        issued = AccessToken.objects.filter(source_refresh_token=row).first() if row.revoked > since else None
    else:
        successor, issued = token, row.access_token
        if issued is None or issued.source_refresh_token_id is None or issued.created <= since:
            return None
        if scope is not None and set(scope.split()) != set(issued.scope.split()):
            return None
    if issued is None or issued.token_checksum != digest(derive(kind="at", token=successor)):
        return None
    return issued, successor


def _verifies(verifier: str | None, challenge: str) -> bool:
    computed = hashlib.sha256((verifier or "").encode("utf-8", "replace")).digest()
    encoded = base64.urlsafe_b64encode(computed).rstrip(b"=").decode()
    return bool(challenge) and hmac.compare_digest(encoded, challenge)

"""Who is calling: bearer token to principal, and the challenges for those who may not."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken

from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import stepup
from confirmhub.oauth.scopes import BASE, expand
from mcp_bridge import lookups

METADATA_PATH = "/.well-known/oauth-protected-resource/mcp"  # RFC 9728 section 3.1


class Verifier:
    """The SDK's TokenVerifier, over our own table of tokens."""

    async def verify_token(self, token: str) -> AccessToken | None:
        found = await lookups.bearer_of(token)
        if found is None:
            return None
        return AccessToken(
            token=token,
            client_id=found.principal.client_id,
            scopes=sorted(expand(found.scopes)),
            expires_at=int(found.expires_at.timestamp()),
            resource=settings.MCP_RESOURCE,  # no token of another audience is found
            # The SDK seals states to client, issuer and subject. Without the last two, all people who
            # use one client would be one principal.
            subject=found.principal.subject,
            claims={"iss": found.issuer},
        )


def caller() -> Principal:
    """The principal that the running tool call acts for."""
    token = get_access_token()
    if token is None or token.subject is None:
        raise RuntimeError("A tool ran without an authenticated caller.")
    return Principal(client_id=token.client_id, subject=token.subject)


async def is_still_good() -> bool:
    """Whether the running call's token is good for all that it was when the call came."""
    token = get_access_token()
    now = await Verifier().verify_token(token.token) if token else None
    return token is not None and now is not None and set(token.scopes) <= set(now.scopes)


def granted() -> frozenset[str]:
    """The scopes of the running call's token."""
    token = get_access_token()
    return frozenset(token.scopes if token else ())


def unauthorized(*, token_was_sent: bool) -> str:
    """The challenge of a 401. RFC 6750 section 3.1: no error code where no token was sent."""
    error = 'error="invalid_token", error_description="The access token is unknown or has expired", '
    return f'Bearer {error if token_was_sent else ""}scope="{" ".join(sorted(BASE))}", {_metadata()}'


def insufficient(*, held: Iterable[str], needed: Iterable[str]) -> str:
    """The challenge of a 403, RFC 6750 section 3.1.

    It names what the token has as well as what it lacks: clients ask for exactly what is named, and
    one that asked for the missing scope alone would come back without the others.
    """
    scope = stepup.challenge_scope(held=held, needed=needed)
    return f'Bearer error="insufficient_scope", scope="{scope}", {_metadata()}'


def _metadata() -> str:
    return f'resource_metadata="{settings.PUBLIC_URL}{METADATA_PATH}"'

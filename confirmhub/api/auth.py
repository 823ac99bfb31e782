"""Who calls: the bearer of an OAuth token, and what the token may be used for."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from confirmhub.oauth import bearer
from confirmhub.oauth.scopes import expand


class BearerAuthentication(BaseAuthentication):
    """Reads a bearer token from the Authorization header, and from nowhere else.

    A browser's session is no credential here: a page that somebody lures a person to must not be able
    to read in their name. Tokens in the query or a form end up in logs (RFC 9700 section 4.3.2).
    """

    def authenticate(self, request: Request) -> tuple[AnonymousUser, bearer.Bearer] | None:
        """Return the bearer, or None where no bearer token was sent.

        Raises:
            AuthenticationFailed: The token is malformed, unknown, expired, or not for this service.
        """
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = bearer.find_for_api(token=token)
        if found is None:
            raise AuthenticationFailed
        return AnonymousUser(), found

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 - the framework's signature
        """Make Django REST framework answer 401, with what `errors` says in the header."""
        return challenge()


class HasScope(BasePermission):
    """Lets in whose token holds the scope that the view requires."""

    def has_permission(self, request: Request, view: object) -> bool:
        if not isinstance(request.auth, bearer.Bearer):
            return False
        return scope_of(view) in expand(request.auth.scopes)


def bearer_of(request: Request) -> bearer.Bearer:
    """The caller of a view that `HasScope` guards.

    Raises:
        TypeError: Nothing guards the view.
    """
    if not isinstance(request.auth, bearer.Bearer):
        raise TypeError("a view without HasScope has no bearer")
    return request.auth


def scope_of(view: object) -> str:
    """The scope that a view requires. A view that names none requires one that nobody holds."""
    return str(getattr(view, "required_scope", ""))


def challenge(*, error: str = "", scope: str = "") -> str:
    """The WWW-Authenticate header (RFC 6750 section 3, RFC 9728 section 5.1)."""
    parts = [
        f'resource_metadata="{settings.PUBLIC_URL}/.well-known/oauth-protected-resource/mcp"',
        f'error="{error}"' if error else "",
        f'scope="{scope}"' if scope else "",
    ]
    return "Bearer " + ", ".join(filter(None, parts))

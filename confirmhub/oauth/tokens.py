"""Token values. A refresh derives its pair from the token it was given.

So the same refresh, sent twice, can get the same answer twice, though only digests are stored
(several hosts refresh once per parallel 401). Nothing extra is minted, and reuse detection
stays exact. Each refresh token leads to its successor, and to the access token beside it. The
toolkit calls the two generators by the names in `defaults`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Literal

from django.conf import settings

if TYPE_CHECKING:
    from oauthlib.common import Request

# Keeps these apart from whatever else the key may be used for.
_DOMAIN = "confirmhub/oauth/v1/"


def access_token(request: Request) -> str:
    """The access token of the pair that is being issued."""
    return derive(kind="at", token=_issued(request))


def refresh_token(request: Request) -> str:
    """The refresh token of the pair that is being issued."""
    return _issued(request)


def derive(*, kind: Literal["at", "rt"], token: str) -> str:
    """The token of `kind` that follows from `token`. Secret scanners know it by its prefix."""
    mac = hmac.digest(settings.TOKEN_KEY.encode(), f"{_DOMAIN}{kind}\n{token}".encode(), hashlib.sha256)
    return f"ch{kind}_{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def digest(token: str) -> str:
    """What is stored in place of a token or code: its SHA-256 in hex."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _issued(request: Request) -> str:
    # Set before where the validator answers with a pair that it has issued already.
    if getattr(request, "issued_refresh_token", None) is None:
        fresh = request.grant_type != "refresh_token"
        source = secrets.token_urlsafe(32) if fresh else str(request.refresh_token)
        request.issued_refresh_token = derive(kind="rt", token=source)
    return str(request.issued_refresh_token)

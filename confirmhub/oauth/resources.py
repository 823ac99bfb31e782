"""What tokens are for: resources, each named by its URL (RFC 8707)."""

from __future__ import annotations

import posixpath

from django.conf import settings

from confirmhub.oauth import redirects

MAX_LENGTH = 255
"""Characters, as the column."""


def is_ours(value: object) -> bool:
    """Whether `value` names the one resource that people's tokens are for."""
    return isinstance(value, str) and is_same(value, settings.MCP_RESOURCE)


def is_same(value: str, resource: str) -> bool:
    """Whether `value` names `resource` (RFC 8707 section 2).

    Case of scheme and host, the default port and a trailing slash make no difference (RFC 3986 section
    6.2), since clients differ in them; anything else does.
    """
    return _canonical(value) is not None and _canonical(value) == _canonical(resource)


def may_be_audience(uri: str) -> bool:
    """Whether `uri` may be the resource of a service: https, or http on this machine, in one spelling."""
    if len(uri) > MAX_LENGTH or not (redirects.is_acceptable(uri) or _is_of_our_origin(uri)):
        return False
    canonical = _canonical(uri)
    parts = redirects.split(uri)
    if canonical is None or parts is None:
        return False
    scheme, host, port, path = canonical
    named = f"[{host}]" if ":" in host else host
    default = {"https": 443, "http": 80}[scheme]
    origin = f"{scheme}://{named}" if port == default else f"{scheme}://{named}:{port}"
    return (
        (scheme == "https" or redirects.is_loopback(host) or _is_of_our_origin(uri))
        and uri == f"{origin}{parts.path}"
        and path == (parts.path or "/")
        and "//" not in path
    )


def _is_of_our_origin(uri: str) -> bool:
    return uri == settings.ISSUER or uri.startswith(f"{settings.ISSUER}/")


def _canonical(uri: str) -> tuple[str, str, int | None, str] | None:
    parts = redirects.split(uri)
    if parts is None or not parts.hostname or "@" in parts.netloc or parts.query or "#" in uri:
        return None
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, parts.hostname, port, posixpath.normpath(parts.path or "/")

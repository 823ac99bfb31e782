"""Where a browser may be sent back to. Pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlencode, urlsplit

MAX_LENGTH = 500
"""Characters. The longest published by a known host is under 100."""


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine, as RFC 8252 section 7.3 means it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_acceptable(uri: str) -> bool:
    """Whether `uri` may be registered: https, or http on a loopback host, and nothing odd in it.

    RFC 6749 section 3.1.2 forbids the fragment. User information is refused because it makes
    the host hard to read, other schemes because any program on the machine can claim them.
    """
    if len(uri) > MAX_LENGTH or not uri.isascii() or not uri.isprintable():
        return False
    if any(character in uri for character in " \"<>\\^`{|}#;,'"):
        return False
    parts = _split(uri)
    if parts is None or not parts.hostname or parts.username is not None:
        return False
    if parts.password is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def with_issuer(uri: str, issuer: str) -> str:
    """`uri` with the `iss` parameter of RFC 9207, unless it is there already."""
    parts = urlsplit(uri)
    if any(pair.split("=", 1)[0] == "iss" for pair in parts.query.split("&")):
        return uri
    query = "&".join(filter(None, [parts.query, urlencode({"iss": issuer})]))
    return parts._replace(query=query).geturl()


def host_and_port(uri: str) -> str:
    """The host of `uri` with its port where one is named; empty if there is none."""
    parts = _split(uri)
    return parts.netloc.rpartition("@")[2] if parts else ""


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        return None
    return parts

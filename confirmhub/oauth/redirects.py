"""Where a browser may be sent back to. Pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlencode, urlsplit

MAX_LENGTH = 500
"""Characters. The longest published by a known host is under 100."""

_HOST = re.compile(r"[A-Za-z0-9.-]+|::1")
_ODD = frozenset(' "#<>\\^`{|}')  # no URI may hold these; some browsers repair them


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine, as RFC 8252 section 7.3 means it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_acceptable(uri: str) -> bool:
    """Whether `uri` may be registered: https, or http on a loopback host, and nothing odd in it.

    RFC 6749 section 3.1.2 forbids the fragment. User information is refused because it makes
    the host hard to read, other schemes because any program on the machine can claim them.
    """
    if len(uri) > MAX_LENGTH or not uri.isascii() or not uri.isprintable() or _ODD & set(uri):
        return False
    parts = split(uri)
    if parts is None or "@" in parts.netloc or not _HOST.fullmatch(parts.hostname or ""):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def with_issuer(uri: str, issuer: str) -> str:
    """`uri` with the `iss` parameter of RFC 9207, exactly once.

    One that a registered redirect URI brings along is dropped: it would be somebody else's.
    """
    parts = urlsplit(uri)
    kept = [pair for pair in parts.query.split("&") if pair and pair.split("=", 1)[0] != "iss"]
    return parts._replace(query="&".join([*kept, urlencode({"iss": issuer})])).geturl()


def split(uri: str) -> SplitResult | None:
    """The parts of `uri`, or None where it is no URI with a usable port."""
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        return None
    return parts

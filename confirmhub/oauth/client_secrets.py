"""The secrets of confidential clients: shown once, stored as a digest. Pure.

Ours are 256 random bits, which no list of passwords holds, so one SHA-256 is enough; a slow hash would
let anybody who sends wrong secrets keep the processors busy.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

STORED = r"^sha256\$[0-9a-f]{64}$"
"""What a stored secret looks like, for the database to check."""


def make() -> str:
    """A new secret. Secret scanners know it by its prefix."""
    return f"chcs_{secrets.token_urlsafe(32)}"


def stored(secret: str) -> str:
    """What is stored in place of `secret`."""
    return f"sha256${hashlib.sha256(secret.encode('utf-8', 'replace')).hexdigest()}"


def matches(*, secret: str, kept: str) -> bool:
    """Whether `kept` was stored for `secret`. A client without one (`kept` is empty) has no match."""
    return bool(kept) and hmac.compare_digest(stored(secret), kept)

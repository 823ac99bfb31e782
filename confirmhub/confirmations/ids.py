"""Ids that grow with time: new rows lie side by side in every index, however many there are."""

from __future__ import annotations

import secrets
import time
import uuid


def new_id() -> uuid.UUID:
    """A UUID of version 7 (RFC 9562 section 5.7): milliseconds since 1970, then 74 random bits.

    It is a name and no secret: whoever knows it gets nothing that their sign-in or token does not give.
    """
    milliseconds = time.time_ns() // 1_000_000
    random = secrets.randbits(74)
    high, low = random >> 62, random & (2**62 - 1)
    return uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)

"""The receipt: what `redeem` returns and executors demand."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass

from confirmhub.confirmations.states import Result


@dataclass(frozen=True, slots=True)
class Receipt:
    """A spent confirmation. Its id is the idempotency key for whatever runs downstream."""

    confirmation_id: uuid.UUID
    digest: str
    """The action's SHA-256, 64 lowercase hex digits."""

    redemption_key: str
    redeemed_at: dt.datetime
    replayed: bool
    """The same redemption key came again: do not act, use the recorded outcome."""

    result: Result | None = None
    """The recorded outcome; None while nobody knows."""

    detail: str = ""

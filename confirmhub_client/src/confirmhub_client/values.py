"""What the hub says, as values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

type Json = bool | int | float | str | list[Json] | dict[str, Json] | None
type Arguments = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """One person's or quorum's consent, asked for one exact action."""

    id: str
    status: str
    """pending, approved, denied, expired, cancelled, revoked or redeemed."""

    page: str
    """Where the person decides."""

    decide_by: dt.datetime
    fields: Mapping[str, Any]
    """All that the hub said."""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Confirmation:
        decide_by = dt.datetime.fromisoformat(body["decide_by"])
        return cls(body["id"], body["status"], body["page"], decide_by, body)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A spent yes. The id is the idempotency key for whatever runs next."""

    confirmation_id: str
    digest: str
    """The action's SHA-256, 64 lowercase hex digits."""

    redemption_key: str
    redeemed_at: dt.datetime
    replayed: bool
    """The same key came again: it was redeemed before."""

    result: str | None
    """succeeded or failed, where an outcome is recorded; None: nobody knows."""

    detail: str

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Receipt:
        outcome = body["outcome"] or {"result": None, "detail": ""}
        return cls(
            body["confirmation_id"],
            body["digest"],
            body["redemption_key"],
            dt.datetime.fromisoformat(body["redeemed_at"]),
            body["replayed"],
            outcome["result"],
            outcome["detail"],
        )

"""The state machine of a confirmation, as data. `ledger` has one function per move."""

from __future__ import annotations

import enum


class Status(enum.StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    CANCELLED = "cancelled"
    REVOKED = "revoked"
    EXPIRED = "expired"
    REDEEMED = "redeemed"


class Verdict(enum.StrEnum):
    APPROVE = "approve"
    DENY = "deny"


class Result(enum.StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Assurance(enum.StrEnum):
    """How surely it was the person who decided."""

    PAGE = "page"  # they read it on the confirm page, signed in
    HOST = "host"  # their host says that they said so


class Mode(enum.StrEnum):
    CONFIRM = "confirm"  # the acting user says yes to their own agent
    APPROVE = "approve"  # people of a group say yes, from a queue
    ALLOW = "allow"  # the policy itself says yes; recorded, and still spent once
    DENY = "deny"  # nobody is asked


EDGES: frozenset[tuple[Status, Status]] = frozenset(
    {
        (Status.PENDING, Status.APPROVED),  # ledger.decide, when the quorum is met
        (Status.PENDING, Status.DENIED),  # ledger.decide, at the first denial
        (Status.PENDING, Status.CANCELLED),  # ledger.cancel, by the requester
        (Status.PENDING, Status.EXPIRED),  # ledger.expire_due, past decide_by
        (Status.APPROVED, Status.REDEEMED),  # ledger.redeem, once
        (Status.APPROVED, Status.REVOKED),  # ledger.revoke, by a person, or by the guard on drift
        (Status.APPROVED, Status.EXPIRED),  # ledger.expire_due, past redeem_by
    }
)
OPEN = frozenset(source for source, _ in EDGES)
FINAL = frozenset(Status) - OPEN

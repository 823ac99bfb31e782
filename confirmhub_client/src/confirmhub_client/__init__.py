"""Ask a person before something that cannot be undone, and spend their yes once. The client of confirmhub."""

from confirmhub_client.errors import (
    AlreadyRedeemed,
    Cancelled,
    Denied,
    Expired,
    Halted,
    NotFound,
    Pending,
    Refused,
    Rejected,
    Replayed,
    Revoked,
    Unreachable,
    Unreported,
)
from confirmhub_client.hub import AsyncHub, Hub
from confirmhub_client.single_use import SingleUse
from confirmhub_client.values import Confirmation, Receipt

__all__ = [
    "AlreadyRedeemed",
    "AsyncHub",
    "Cancelled",
    "Confirmation",
    "Denied",
    "Expired",
    "Halted",
    "Hub",
    "NotFound",
    "Pending",
    "Receipt",
    "Refused",
    "Rejected",
    "Replayed",
    "Revoked",
    "SingleUse",
    "Unreachable",
    "Unreported",
]

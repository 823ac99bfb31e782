"""What a token may be used for, in the words a person consents to. Pure: settings import it."""

from __future__ import annotations

from collections.abc import Iterable

ADMIN = "confirm:admin"

SCOPES: dict[str, str] = {
    "confirm:read": "See the confirmations it asked for, and what became of them",
    "confirm:request": "Ask you to confirm an action",
    "confirm:redeem": "Use a confirmation that you approved, once, for exactly that action",
    "files:delete": "Delete files in the shared folders, each only after you confirm it",
    "files:move": "Move and rename files in the shared folders, each only after you confirm it",
    ADMIN: "Everything above, and watch over the confirmations of others",
}

# What the 401 challenge and the resource metadata name: all that an ordinary agent needs, so
# that step-up, which several hosts do badly, stays off the common path.
BASE = ("confirm:read", "confirm:request", "confirm:redeem")

# What a client that registered itself may ask for. An operator can make a client by hand for
# the rest; a document that a stranger publishes never leads to administration.
OPEN_TO_ALL = tuple(name for name in SCOPES if name != ADMIN)

# Asked for nothing means the least.
LEAST = ("confirm:read",)


def expand(scopes: Iterable[str]) -> frozenset[str]:
    """Everything that `scopes` allow: `confirm:admin` implies the rest.

    MCP 2026-07-28, authorization, requires the resource to honour its scope hierarchy.
    """
    held = frozenset(scopes)
    return held | frozenset(SCOPES) if ADMIN in held else held

"""A ledger for states that must be spent at most once, on however many replicas.

It takes the place of one that an MCP server on the official SDK keeps in memory. The SDK's boundary seals
what `issue` returns into the request state and binds it to the caller and the call; it never spends it.
"""

from __future__ import annotations

import datetime as dt
import os
import secrets

from confirmhub_client.errors import NotFound, Refused, Rejected
from confirmhub_client.hub import Hub

ACTION = "mcp.single-use"
_NO_RULE = (
    "The hub asks a person before each state of this service is issued. An administrator has to add a "
    f"rule for it: mode allow, action {ACTION}, the service's audience."
)


class SingleUse:
    """Issues states and spends each of them once. Threads and processes may share what one has issued."""

    def __init__(self, ttl_seconds: int = 300, *, hub: Hub | None = None) -> None:
        """Without a hub, the one that CONFIRMHUB_URL, CONFIRMHUB_CLIENT_ID and _CLIENT_SECRET name.

        The hub's rule has a limit of its own; the shorter one holds.
        """
        self._ttl = dt.timedelta(seconds=ttl_seconds)
        self._hub = hub or Hub(
            os.environ["CONFIRMHUB_URL"],
            client_id=os.environ["CONFIRMHUB_CLIENT_ID"],
            client_secret=os.environ["CONFIRMHUB_CLIENT_SECRET"],
        )

    def issue(self, *, now: int | None = None) -> str:  # noqa: ARG002 - the clock is the hub's
        """A new state.

        Raises:
            Refused: The hub has no rule that lets this service do so.
            Unreachable: The hub cannot be reached.
        """
        nonce = secrets.token_urlsafe(24)
        made = self._hub.ask(ACTION, {"nonce": nonce})
        if made.status != "approved":
            self._hub.cancel(made.id)
            raise Refused({"title": _NO_RULE})
        return f"{made.id}.{nonce}"

    def spend(self, state: str, *, now: int | None = None) -> None:  # noqa: ARG002 - the same
        """Spend it.

        Raises:
            Rejected: It was spent before, has expired, or was never issued.
            Unreachable: The hub cannot be reached; do not act.
        """
        id_, _, nonce = state.partition(".")
        if len(id_) != 36 or not id_.replace("-", "").isalnum() or not nonce:
            raise Rejected({"title": "This is no state that was issued here."})
        try:
            asked = self._hub.get(id_)
            receipt = self._hub.redeem(id_, ACTION, {"nonce": nonce})
        except NotFound as exc:
            raise Rejected({"title": "This is no state that was issued here."}) from exc
        except Refused as exc:
            raise Rejected({"title": str(exc), "type": exc.type}) from exc
        self._hub.report(receipt, result="succeeded", detail="Spent.")
        if receipt.redeemed_at - dt.datetime.fromisoformat(asked.fields["requested_at"]) > self._ttl:
            raise Rejected({"title": "This state has expired."})

"""Rows as the ledger makes them."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth.models import User

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Verdict

AUDIENCE = "http://localhost:8000/mcp"
ARGUMENTS = {"to": "DE89370400440532013000", "cents": 12_50}
TRANSFER = Action(audience=AUDIENCE, name="payments.transfer", arguments=ARGUMENTS)
PASSWORD = "correct horse battery"


def make_user(username: str, **fields: Any) -> User:
    return User.objects.create_user(username, f"{username}@example.org", PASSWORD, **fields)


def principal_for(user: User, *, client_id: str = "https://agent.example/client.json") -> Principal:
    return Principal(client_id=client_id, subject=str(user.pk))


def make_pending(requester: Principal, *, action: Action = TRANSFER, **fields: Any) -> Confirmation:
    return ledger.request(requester=requester, action=action, **fields)


def decide(
    confirmation: Confirmation, approver: User, verdict: Verdict = Verdict.APPROVE, *, reason: str = ""
) -> Confirmation:
    return ledger.decide(
        confirmation_id=confirmation.id,
        approver=approver,
        verdict=verdict,
        digest_shown=bytes(confirmation.view_digest).hex(),
        reason=reason,
    )


def make_approved(requester: Principal, approver: User, *, action: Action = TRANSFER) -> Confirmation:
    return decide(make_pending(requester, action=action), approver)


def redeem(
    confirmation: Confirmation, requester: Principal, *, action: Action = TRANSFER, key: str | None = None
) -> Receipt:
    return ledger.redeem(
        confirmation_id=confirmation.id,
        requester=requester,
        action=action,
        redemption_key=key or secrets.token_hex(8),
    )


def kinds_of_events(confirmation: Confirmation) -> list[str]:
    return list(confirmation.events.order_by("seq").values_list("kind", flat=True))

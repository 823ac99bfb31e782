"""What a service hears of its own confirmations: what became of them, and never the arguments."""

from __future__ import annotations

import datetime as dt
import uuid

from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation, Hook
from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.confirmations.sending import Kind
from confirmhub.notifications.channels.base import Post
from confirmhub.notifications.channels.webhook import send_signed
from confirmhub.notifications.times import stamp


def read(*, notice: LeasedNotice) -> tuple[Hook, Confirmation] | None:
    """The hook of a notice, and the confirmation of its service; None where there is nothing to send.

    That is where the hook is switched off, and of all but the end of a question that was asked by the
    approval protocol, whose receivers know no other event.
    """
    hook = Hook.objects.filter(pk=notice.hook_id or 0, is_active=True).first()
    if hook is None:
        return None
    own = queries.list_for_operator().filter(id=notice.confirmation_id, requester_client_id=hook.client_id)
    confirmation = own.select_related("aap_submission").first()
    if confirmation is None or (_is_of_protocol(confirmation) and notice.kind != Kind.SETTLED):
        return None
    return hook, confirmation


def send(*, notice: LeasedNotice, hook: Hook, confirmation: Confirmation, post: Post) -> None:
    """Post it, signed; raises as `channels.base.post_json` does."""
    if _is_of_protocol(confirmation):
        message_id = str(uuid.uuid5(confirmation.id, f"notice {notice.id}"))
        body = resolved(message_id=message_id, confirmation=confirmation)
    else:
        message_id = f"event_{confirmation.id.hex}_{notice.id}"
        body = payload(kind=Kind(notice.kind), confirmation=confirmation)
    send_signed(post, hook.url, body, message_id=message_id, secrets=hook.secrets.split())


def payload(*, kind: Kind, confirmation: Confirmation) -> dict[str, object]:
    """The body, as the Standard Webhooks specification lays it out.

    It tells what is true now; a later event may have been sent before.
    """
    outcome = getattr(confirmation, "outcome", None)
    moments = {
        Kind.SETTLED: confirmation.settled_at,
        Kind.OUTCOME: outcome.reported_at if outcome else None,
    }
    return {
        "type": f"confirmation.{kind}",
        "timestamp": _iso(moments.get(kind) or dt.datetime.now(dt.UTC)),
        "data": {
            "id": str(confirmation.id),
            "status": str(confirmation.effective_status),
            "action": confirmation.action,
            "digest": bytes(confirmation.digest).hex(),
            "requested_at": _iso(confirmation.requested_at),
            "decide_by": _iso(confirmation.decide_by),
            "settled_at": _iso(confirmation.settled_at),
            "redeem_by": _iso(confirmation.redeem_by),
            "redeemed_at": _iso(confirmation.redeemed_at),
            "result": str(outcome.result) if outcome else None,
        },
    }


def resolved(*, message_id: str, confirmation: Confirmation) -> dict[str, object]:
    """The body as the approval protocol has it (AAP version 1, RequestResolvedEvent): each time the same.

    It tells that there is an answer, and not which.
    """
    return {
        "id": message_id,
        "type": "request.resolved",
        "instance_id": str(uuid.uuid5(uuid.NAMESPACE_URL, confirmation.requester_client_id)),
        "request_id": str(confirmation.id),
        # What nobody decided on ended at its deadline, whenever the sweeper came by.
        "created_at": _iso(min(confirmation.settled_at or confirmation.decide_by, confirmation.decide_by)),
    }


def _is_of_protocol(confirmation: Confirmation) -> bool:
    """Whether it was asked by the approval protocol, which keeps a row of its own beside it."""
    return hasattr(confirmation, "aap_submission")


def _iso(at: dt.datetime | None) -> str | None:
    return stamp(at) if at else None

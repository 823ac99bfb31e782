"""A webhook, signed as the Standard Webhooks specification says, by its library."""

from __future__ import annotations

import base64
import datetime as dt
import json
import secrets
from collections.abc import Mapping, Sequence

import standardwebhooks

from confirmhub.notifications.channels.base import Post, Target, send_body
from confirmhub.notifications.messages import Message
from confirmhub.notifications.times import stamp


class Webhook:
    """A signed POST to a URL of theirs."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def send(self, *, message: Message, target: Target) -> None:
        """Send what the message says as JSON; raises as `post_json` does."""
        payload = {"type": f"notice.{message.kind}", "timestamp": stamp(message.at), "data": message.data}
        send_signed(
            self._post, target.address, payload, message_id=message.webhook_id, secrets=target.secrets
        )


def send_signed(
    post: Post, url: str, payload: Mapping[str, object], *, message_id: str, secrets: Sequence[str]
) -> None:
    """Post this as JSON with the specification's headers, one signature a secret.

    The receiver refuses what was signed over five minutes ago, so it is signed anew for each attempt, under
    the same id. Raises as `post_json` does.
    """
    now = dt.datetime.now(dt.UTC)
    body = json.dumps(payload)
    signatures = [
        standardwebhooks.Webhook(secret).sign(msg_id=message_id, timestamp=now, data=body)
        for secret in secrets
    ]
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
    send_body(post, url, body.encode("ascii"), headers=headers)


def new_secret() -> str:
    """A secret as the specification writes one: 32 random bytes."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode('ascii')}"

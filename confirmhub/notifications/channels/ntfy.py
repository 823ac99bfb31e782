"""A topic of an ntfy server."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit, urlunsplit

from confirmhub.notifications.channels.base import Post, Target, Undeliverable, post_json
from confirmhub.notifications.messages import Message


class Ntfy:
    """A push message. What settles a question takes the place of the message that asked."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def send(self, *, message: Message, target: Target) -> None:
        """Send the message; raises as `post_json` does."""
        parts = urlsplit(target.address)
        root, _, topic = parts.path.rpartition("/")
        if not topic:
            raise Undeliverable("The address ends in no topic.")
        payload = {
            "topic": unquote(topic),
            "title": message.heading,
            "message": "\n".join(f"{label}: {value}" for label, value in message.rows),
            "click": message.link,  # and no other action: nothing is decided in a notification
            "priority": 4 if message.asked else 3,
            # From version 2.16 on a message of the same sequence replaces the one before.
            "sequence_id": message.thread_id,
        }
        server = urlunsplit((parts.scheme, parts.netloc, f"{root}/", "", ""))
        headers = {"Authorization": f"Bearer {target.secrets[0]}"} if target.secrets else {}
        post_json(self._post, server, payload, headers=headers)

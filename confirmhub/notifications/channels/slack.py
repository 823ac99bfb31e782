"""An incoming webhook of Slack, or of what speaks its language."""

from __future__ import annotations

from confirmhub.notifications.channels.base import Post, Target, post_json
from confirmhub.notifications.messages import Message


class Slack:
    """Blocks of plain text: no markup of Slack's is ever read in a value, so none can be forged."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def send(self, *, message: Message, target: Target) -> None:
        """Send the message; raises as `post_json` does."""
        payload = {
            "text": message.subject,  # for the notification; our words alone
            "mrkdwn": False,
            "unfurl_links": False,
            "blocks": [
                {"type": "header", "text": _plain(message.heading)},
                # Each its own, so that none comes near the limit of a text object, 3,000 characters.
                *({"type": "section", "text": _plain(f"{name}: {value}")} for name, value in message.rows),
                {"type": "rich_text", "elements": [_link(message)]},
            ],
        }
        post_json(self._post, target.address, payload)


def _plain(text: str) -> dict[str, object]:
    # Slack decodes these three in every text object, and no others.
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"type": "plain_text", "emoji": False, "text": escaped}


def _link(message: Message) -> dict[str, object]:
    # Text elements of a rich text are taken as they are. The link is ours, and opens a page that asks for
    # the sign-in.
    link = {"type": "link", "url": message.link, "text": message.invitation}
    return {"type": "rich_text_section", "elements": [link]}

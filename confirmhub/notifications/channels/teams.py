"""An incoming webhook of Microsoft Teams: a workflow that posts an Adaptive Card."""

from __future__ import annotations

from confirmhub.notifications.channels.base import Post, Target, post_json
from confirmhub.notifications.messages import Message


class Teams:
    """A card of text runs, the one element of a card in which Teams reads no Markdown."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def send(self, *, message: Message, target: Target) -> None:
        """Send the message; raises as `post_json` does."""
        card = {
            "type": "AdaptiveCard",
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "version": "1.4",
            "body": [
                _block(_run(message.heading, weight="Bolder")),
                *(_block(_run(f"{label}: ", isSubtle=True), _run(value)) for label, value in message.rows),
            ],
            # It opens the page, which asks for the sign-in. Nothing is decided in a chat.
            "actions": [{"type": "Action.OpenUrl", "title": message.invitation, "url": message.link}],
        }
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
        post_json(self._post, target.address, {"type": "message", "attachments": [attachment]})


def _block(*runs: dict[str, object]) -> dict[str, object]:
    return {"type": "RichTextBlock", "inlines": list(runs)}


def _run(text: str, **style: object) -> dict[str, object]:
    return {"type": "TextRun", "text": text, **style}

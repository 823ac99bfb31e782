"""The ways to reach a person, each a class with one method, `send`."""

from __future__ import annotations

from collections.abc import Callable

from confirmhub.notifications.channels.base import Channel, Post
from confirmhub.notifications.channels.ntfy import Ntfy
from confirmhub.notifications.channels.slack import Slack
from confirmhub.notifications.channels.teams import Teams
from confirmhub.notifications.channels.webhook import Webhook

# Mail has a connection to keep, and is not among them.
BY_HTTP: dict[str, Callable[[Post], Channel]] = {
    "slack": Slack,
    "teams": Teams,
    "ntfy": Ntfy,
    "webhook": Webhook,
}

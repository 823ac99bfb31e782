"""What the channels share."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from confirmhub.notifications import outward
from confirmhub.notifications.messages import Message

type Post = Callable[..., outward.Answer]


class Undeliverable(Exception):
    """It cannot be sent this way, however often it is tried. The text is ours."""


class TryLater(Exception):
    """It was not taken. The text is ours."""

    def __init__(self, why: str, *, after: dt.timedelta | None = None) -> None:
        super().__init__(why)
        self.after = after  # what the server asked for


@dataclass(frozen=True, slots=True)
class Target:
    """Where a message goes."""

    address: str
    """A mail address or a URL."""

    secrets: tuple[str, ...] = ()
    """What the channel signs or signs in with, the newest first."""


class Channel(Protocol):
    """A way to reach a person."""

    def send(self, *, message: Message, target: Target) -> None:
        """Hand the message over. It may be called again for the same one.

        Raises:
            Undeliverable: It is no use to try again.
            TryLater: It is.
            OSError, http.client.HTTPException: It could not be handed over.
        """


def post_json(
    post: Post, url: str, payload: Mapping[str, object], *, headers: Mapping[str, str] | None = None
) -> None:
    """Post this as JSON, in ASCII.

    Raises:
        Undeliverable: Nothing is ever sent there, or what was there is gone (RFC 9110 section 15.5.11).
        TryLater: It was refused.
        OSError, http.client.HTTPException: It could not be sent.
    """
    send_body(post, url, json.dumps(payload).encode("ascii"), headers=headers or {})


def send_body(post: Post, url: str, body: bytes, *, headers: Mapping[str, str]) -> None:
    """Post these bytes; raises as `post_json` does."""
    try:
        answer = post(url, body=body, headers=headers)
    except outward.UnusableAddressError as exc:
        raise Undeliverable(str(exc)) from exc
    if answer.status == 410:
        raise Undeliverable("The server says that the address is gone.")
    if not 200 <= answer.status < 300:
        raise TryLater(f"The server answered {answer.status}.", after=answer.retry_after)

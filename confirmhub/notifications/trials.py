"""The message that a person has sent to one of their destinations, to see that it comes.

It goes the way of every notice: a line in the outbox, which the worker sends.
"""

from __future__ import annotations

import logging
import time

from confirmhub.confirmations import outbox
from confirmhub.notifications import delivery, messages, outward
from confirmhub.notifications.channels.base import Post, TryLater, Undeliverable
from confirmhub.notifications.channels.mail import Email
from confirmhub.notifications.models import Destination

logger = logging.getLogger(__name__)

TASK = "confirmhub.notifications.try"
EVERY = 10  # seconds; of more within them, one is sent
_WIDTH = 1 << 32


def ask(*, destination: Destination) -> None:
    """Have one sent. The slot names the destination and the time, so that a row makes no flood."""
    outbox.enqueue_chore(task=TASK, slot=destination.pk * _WIDTH + int(time.time()) // EVERY)


def send(*, slot: int, post: Post = outward.post) -> None:
    """Send it, once; whether it came, the person sees, and whether it failed, their page says."""
    destination = Destination.objects.select_related("user").filter(pk=slot // _WIDTH).first()
    if destination is None:
        return
    message = messages.compose_trial(number=slot, recipient=destination.user)
    failure = ""
    try:
        with Email() as mail:
            delivery.send_message(
                message=message, recipient=destination.user, destination=destination, mail=mail, post=post
            )
    except (Undeliverable, TryLater) as exc:
        failure = str(exc)
    except Exception as exc:
        # Whatever it was, the person's page must say so: raised on, it would be sent again for ever.
        logger.exception("a trial of destination %d was not sent", destination.pk)
        failure = f"It could not be sent: {type(exc).__name__}."
    delivery.record(destination=destination, failure=failure)

"""Delivering notices: from their lines in the outbox to a channel, and back to the line."""

from __future__ import annotations

import datetime as dt
import http.client
import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.utils import timezone

from confirmhub.confirmations import outbox, queries
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.confirmations.sending import Kind
from confirmhub.confirmations.states import Status
from confirmhub.notifications import hooks, messages, outward, people, quiet
from confirmhub.notifications.breaker import PAUSE, Breaker
from confirmhub.notifications.channels import BY_HTTP
from confirmhub.notifications.channels.base import Post, Target, TryLater, Undeliverable
from confirmhub.notifications.channels.mail import Email
from confirmhub.notifications.models import Destination

logger = logging.getLogger(__name__)

FIRST_PAUSE = dt.timedelta(seconds=15)
LONGEST_PAUSE = dt.timedelta(minutes=30)
ATTEMPTS = 8
"""About half an hour of trying in all; most confirmations are past their time by then."""

ATTEMPTS_OF_HOOKS = 32
"""Half a day: what became of a confirmation is of use to a service for longer than to a person."""

AT_MOST = 30.0
"""Seconds that one call goes on for: half a lease, so that no other worker takes what is still in hand."""

MAIL = (0, "email")
"""The way to their account's address, for whom no other is left."""

breaker = Breaker()


class _Unneeded(Exception):
    """Nobody needs the notice any more."""


class _Unwanted(Exception):
    """The recipient has turned this way off, or removed it."""


class _Quiet(Exception):
    """It comes in the recipient's quiet hours."""

    def __init__(self, until: dt.datetime) -> None:
        super().__init__()
        self.until = until


@dataclass(frozen=True, slots=True)
class _Batch:
    """What is read once for the notices of one call."""

    people: Mapping[int, User]
    confirmations: Mapping[tuple[uuid.UUID, int], Confirmation]
    destinations: Mapping[int, Destination]
    mail: Email
    post: Post
    names: messages.Names


def deliver(*, notice_ids: Sequence[int], post: Post = outward.post) -> None:
    """Send leased notices, and record of each what came of it. It may run twice; the second finds nothing.

    A notice counts as sent only once a channel took it. One that cannot be sent is given up, which the queue
    and the confirmation's log show; one that nobody needs any more is withdrawn: a notice is never just gone.
    """
    ends = time.monotonic() + AT_MOST
    leased = outbox.find_leased(notice_ids=notice_ids)
    known, destinations = people.find(notices=leased)
    pairs = [
        (notice.confirmation_id, notice.recipient_id) for notice in leased if notice.recipient_id is not None
    ]
    seen = queries.get_for_approvers(pairs=pairs) if pairs else {}
    with Email() as mail:
        batch = _Batch(known, seen, destinations, mail, post, messages.Names())
        for notice in leased:
            if time.monotonic() > ends:
                outbox.postpone(notice_id=notice.id, until=timezone.now())
            else:
                _deliver(notice, batch)


def pause_after(*, attempts: int) -> dt.timedelta:
    """How long to wait before the next attempt: twice as long each time, up to half an hour."""
    return min(FIRST_PAUSE * (1 << min(max(attempts - 1, 0), 16)), LONGEST_PAUSE)


def _deliver(notice: LeasedNotice, batch: _Batch) -> None:
    pause = pause_after(attempts=notice.attempts)
    most = ATTEMPTS_OF_HOOKS if notice.hook_id is not None else ATTEMPTS
    destination = batch.destinations.get(notice.destination)
    why = ""
    try:
        _send(notice, destination, batch)
    except _Unneeded:
        outbox.withdraw(notice_id=notice.id)
        return
    except _Unwanted:
        outbox.withdraw(notice_id=notice.id, or_else=MAIL)
        return
    except _Quiet as exc:
        outbox.postpone(notice_id=notice.id, until=exc.until)
        return
    except Undeliverable as exc:
        why, pause, most = str(exc), dt.timedelta(0), 0
        logger.warning("notice %d is given up: %s", notice.id, why)
    except TryLater as exc:
        why = str(exc)
        pause = min(max(pause, exc.after or pause), LONGEST_PAUSE)
        logger.warning("notice %d was not sent: %s", notice.id, why)
    except Exception as exc:
        # Whatever it was, the line in the outbox must say that it failed. Raised on, the notice would
        # come back at each end of its lease, for ever.
        why = f"It could not be sent: {type(exc).__name__}."
        logger.exception("notice %d was not sent", notice.id)
    if why:
        last = MAIL if notice.recipient_id is not None else None
        outbox.mark_failed(notice_id=notice.id, retry_in=pause, give_up_after=most, why=why, or_else=last)
    else:
        outbox.mark_sent(notice_id=notice.id)
    if destination is not None:
        record(destination=destination, failure=why)


def record(*, destination: Destination, failure: str) -> None:
    """Note for the person's page how the last attempt went."""
    row = Destination.objects.filter(pk=destination.pk)
    if failure:
        row.update(failure=failure[:200])
    else:
        row.update(sent_at=Now(), failure="")


def _send(notice: LeasedNotice, destination: Destination | None, batch: _Batch) -> None:
    if notice.hook_id is not None:
        _send_to_service(notice, batch)
        return
    assert notice.recipient_id is not None
    recipient = batch.people[notice.recipient_id]
    confirmation = batch.confirmations.get((notice.confirmation_id, notice.recipient_id))
    if confirmation is None:  # they may not see it any more
        raise _Unneeded
    asks = Kind(notice.kind) in messages.ASKING
    if asks and confirmation.effective_status is not Status.PENDING:
        raise _Unneeded
    if notice.destination and (destination is None or not destination.is_active):
        raise _Unwanted
    until = quiet.waits_until(
        hours=getattr(recipient, "quiet_hours", None),
        now=timezone.now(),
        useless_after=confirmation.decide_by if asks else None,
    )
    if until is not None:
        raise _Quiet(until)
    message = messages.compose(
        notice=notice, confirmation=confirmation, recipient=recipient, names=batch.names
    )
    send_message(
        message=message, recipient=recipient, destination=destination, mail=batch.mail, post=batch.post
    )


def send_message(
    *,
    message: messages.Message,
    recipient: User,
    destination: Destination | None,
    mail: Email,
    post: Post,
) -> None:
    """Send one message to one of a person's destinations, or to their account's address."""
    if destination is None or destination.channel == "email":
        mail.send(message=message, target=Target(recipient.email))
        return
    channel = BY_HTTP[destination.channel](post)
    target = Target(destination.address, destination.secret_list)
    with _watched(destination.address):
        channel.send(message=message, target=target)


@contextmanager
def _watched(url: str) -> Iterator[None]:
    """Leave a server alone that failed a moment ago: one that hangs would take its time from all others."""
    if breaker.is_open(url):
        raise TryLater("The server failed a moment ago.")
    try:
        yield
    except TryLater as exc:
        breaker.failed(url, pause=min(exc.after or PAUSE, LONGEST_PAUSE))
        raise
    except (OSError, http.client.HTTPException) as exc:
        breaker.failed(url)
        raise TryLater(f"The server was not reached, or did not answer: {type(exc).__name__}.") from exc


def _send_to_service(notice: LeasedNotice, batch: _Batch) -> None:
    found = hooks.read(notice=notice)
    if found is None:
        raise _Unneeded
    hook, confirmation = found
    with _watched(hook.url):
        hooks.send(notice=notice, hook=hook, confirmation=confirmation, post=batch.post)

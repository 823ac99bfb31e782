"""Delivering one notice: from its line in the outbox to a channel, and back to the line."""

from __future__ import annotations

import datetime as dt
import logging

from django.contrib.auth.models import User

from confirmhub.confirmations import outbox, queries
from confirmhub.confirmations.errors import NotFound
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.confirmations.states import Status
from confirmhub.notifications import messages
from confirmhub.notifications.channels import Channel, Undeliverable

logger = logging.getLogger(__name__)

FIRST_PAUSE = dt.timedelta(seconds=15)
LONGEST_PAUSE = dt.timedelta(minutes=30)
ATTEMPTS = 8
"""About half an hour of trying in all; most confirmations are past their time by then."""


def deliver(*, notice_id: int, channel: Channel) -> None:
    """Send a leased notice, and record what came of it. It may run twice; the second finds nothing to do.

    A notice counts as sent only once a channel took it. One that cannot be sent, or need not any more, is
    given up, which the outbox shows: a notice is never just gone.
    """
    notice = outbox.find_leased(notice_ids=[notice_id])
    if not notice:
        return
    try:
        _send(notice[0], channel)
    except Undeliverable as exc:
        logger.warning("notice %d is given up: %s", notice_id, exc)
        outbox.mark_failed(notice_id=notice_id, retry_in=dt.timedelta(0), give_up_after=0)
    except Exception:
        # Whatever it was, the line in the outbox must say that it failed. Raised on, the notice would
        # come back at each end of its lease, for ever.
        logger.exception("notice %d was not sent", notice_id)
        pause = pause_after(attempts=notice[0].attempts)
        outbox.mark_failed(notice_id=notice_id, retry_in=pause, give_up_after=ATTEMPTS)
    else:
        outbox.mark_sent(notice_id=notice_id)


def pause_after(*, attempts: int) -> dt.timedelta:
    """How long to wait before the next attempt: twice as long each time, up to half an hour."""
    return min(FIRST_PAUSE * (1 << min(max(attempts - 1, 0), 16)), LONGEST_PAUSE)


def _send(notice: LeasedNotice, channel: Channel) -> None:
    recipient = User.objects.get(pk=notice.recipient_id)
    confirmation = _read(notice, recipient)
    if notice.kind == "asked" and confirmation.effective_status is not Status.PENDING:
        raise Undeliverable("it was settled before anybody was told")
    message = messages.compose(notice=notice, confirmation=confirmation, recipient=recipient)
    channel.send(message=message, recipient=recipient)


def _read(notice: LeasedNotice, recipient: User) -> Confirmation:
    try:
        return queries.get_for_approver(confirmation_id=notice.confirmation_id, approver=recipient)
    except NotFound as exc:
        raise Undeliverable("they may not see this confirmation any more") from exc

"""The Celery tasks. Each takes an id, makes one call, and may run twice.

A task never starts another: with the embedded broker a message that a child process sends is lost.
What has to follow is a line in the outbox.
"""

from __future__ import annotations

from celery import shared_task

from confirmhub.confirmations import ledger, outbox
from confirmhub.notifications import delivery
from confirmhub.notifications.channels import Email

DELIVER = "confirmhub.notifications.deliver"
EXPIRE_DUE = "confirmhub.notifications.expire_due"
CHORES = frozenset({EXPIRE_DUE})
BATCH = 500  # confirmations that expire in one transaction


@shared_task(name=DELIVER)
def deliver(notice_id: int) -> None:
    """Send one notice."""
    delivery.deliver(notice_id=notice_id, channel=Email())


@shared_task(name=EXPIRE_DUE)
def expire_due(chore_id: int) -> None:
    """Settle what is past its time. This only tidies: expiry is a fact before it is a status."""
    while ledger.expire_due(limit=BATCH):
        pass
    outbox.mark_done(chore_id=chore_id)

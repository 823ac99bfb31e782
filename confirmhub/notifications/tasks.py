"""The Celery tasks. Each takes an id, makes one call, and may run twice.

A task never starts another: with the embedded broker a message that a child process sends is lost.
What has to follow is a line in the outbox.
"""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from confirmhub.confirmations import audit, ledger, outbox
from confirmhub.notifications import delivery
from confirmhub.notifications.channels import Email
from confirmhub.oauth import housekeeping

DELIVER = "confirmhub.notifications.deliver"
EXPIRE_DUE = "confirmhub.notifications.expire_due"
SEAL = "confirmhub.notifications.seal"
RETIRE = "confirmhub.notifications.retire"
SWEEP_CLIENTS = "confirmhub.notifications.sweep_clients"
CHORES = frozenset({EXPIRE_DUE, SEAL, RETIRE, SWEEP_CLIENTS})
BATCH = 500  # confirmations in one transaction


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


@shared_task(name=SEAL)
def seal(chore_id: int) -> None:
    """Seal the logs that are finished."""
    while audit.seal(limit=BATCH):
        pass
    outbox.mark_done(chore_id=chore_id)


@shared_task(name=RETIRE)
def retire(chore_id: int) -> None:
    """Let go of what has been kept for as long as the setting says; without one, of nothing."""
    if settings.RETAIN_FOR is not None:
        while audit.retire(older_than=settings.RETAIN_FOR, limit=BATCH):
            pass
    outbox.mark_done(chore_id=chore_id)


@shared_task(name=SWEEP_CLIENTS)
def sweep_clients(chore_id: int) -> None:
    """Remove what the authorization server no longer needs."""
    housekeeping.sweep()
    outbox.mark_done(chore_id=chore_id)

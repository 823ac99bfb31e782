"""The Celery tasks. Each takes ids, makes one call, and may run twice.

A task never starts another: with the embedded broker a message that a child process sends is lost.
What has to follow is a line in the outbox.
"""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from confirmhub.confirmations import audit, ledger, outbox
from confirmhub.notifications import delivery, trials
from confirmhub.oauth import housekeeping

DELIVER = "confirmhub.notifications.deliver"
TRY = trials.TASK
EXPIRE_DUE = "confirmhub.notifications.expire_due"
REMIND_DUE = "confirmhub.notifications.remind_due"
ESCALATE_DUE = "confirmhub.notifications.escalate_due"
SEAL = "confirmhub.notifications.seal"
RETIRE = "confirmhub.notifications.retire"
SWEEP_CLIENTS = "confirmhub.notifications.sweep_clients"
CHORES = frozenset({EXPIRE_DUE, REMIND_DUE, ESCALATE_DUE, SEAL, RETIRE, SWEEP_CLIENTS})
BATCH = 500  # confirmations in one transaction


@shared_task(name=DELIVER)
def deliver(notice_ids: list[int]) -> None:
    """Send some notices."""
    delivery.deliver(notice_ids=notice_ids)


@shared_task(name=TRY)
def try_destination(chore_id: int, slot: int) -> None:
    """Send the message that a person asked for on their account page."""
    trials.send(slot=slot)
    outbox.mark_done(chore_id=chore_id)


@shared_task(name=EXPIRE_DUE)
def expire_due(chore_id: int) -> None:
    """Settle what is past its time. This only tidies: expiry is a fact before it is a status."""
    while ledger.expire_due(limit=BATCH):
        pass
    outbox.mark_done(chore_id=chore_id)


@shared_task(name=REMIND_DUE)
def remind_due(chore_id: int) -> None:
    """Remind those who have not decided, where the policy says so."""
    while ledger.remind_due(limit=BATCH):
        pass
    outbox.mark_done(chore_id=chore_id)


@shared_task(name=ESCALATE_DUE)
def escalate_due(chore_id: int) -> None:
    """Ask the next group, where the policy says so."""
    while ledger.escalate_due(limit=BATCH):
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

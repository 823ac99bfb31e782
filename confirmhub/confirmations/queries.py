"""Every read of confirmations. The first word after the verb says for whom, and so who may see what."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.db.models.functions import Now

from confirmhub.confirmations import errors, rows, rules
from confirmhub.confirmations.models import Confirmation, Decision
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import OPEN, Status, Verdict

# Walks one confirmation's log from its first line and takes every hash again.
CHAIN = """
WITH chain AS (
    SELECT e.seq, e.hash, row_number() OVER line AS place, confirmhub_event_hash(
        coalesce(lag(e.hash) OVER line, ''::bytea), e.confirmation_id, e.seq, e.kind, e.actor, e.at, e.detail
    ) AS expected
    FROM confirmations_event AS e WHERE e.confirmation_id = %s WINDOW line AS (ORDER BY e.seq)
)
SELECT count(chain.seq) = c.event_count
    AND coalesce(bool_and(chain.hash = chain.expected AND chain.seq = chain.place), true)
    AND coalesce((array_agg(chain.hash ORDER BY chain.seq DESC))[1], ''::bytea) = c.event_head
FROM confirmations_confirmation AS c LEFT JOIN chain ON true
WHERE c.id = %s GROUP BY c.id
"""


def get_for_requester(*, confirmation_id: uuid.UUID, requester: Principal) -> Confirmation:
    """A requester's own confirmation, with its outcome.

    Raises:
        NotFound: No such confirmation, or not theirs.
    """
    found = _timed(rows.of(confirmation_id, requester)).first()
    if found is None:
        raise errors.NotFound
    return found


def get_for_approver(*, confirmation_id: uuid.UUID, approver: User) -> Confirmation:
    """A confirmation that this person may decide on, could have, or that their own agent asked for.

    Raises:
        NotFound: No such confirmation, or not theirs.
    """
    found = _timed(rules.may_see(approver=approver).filter(id=confirmation_id)).first()
    if found is None:
        raise errors.NotFound
    return found


def may_decide(*, confirmation: Confirmation, approver: User) -> bool:
    """Whether the policy lets this person decide on this confirmation, which they may see."""
    return rules.may_decide(confirmation=confirmation, approver=approver)


def list_waiting_for(*, approver: User) -> QuerySet[Confirmation]:
    """What waits for this person's decision, the one due first at the top."""
    theirs = _timed(rules.waiting_for(approver=approver))
    return theirs.filter(status=Status.PENDING, decide_by__gt=Now()).order_by("decide_by", "id")


def list_settled_for(*, approver: User, limit: int) -> list[Confirmation]:
    """What no longer waits for this person, the newest at the top."""
    newest: list[Confirmation] = []
    # One part at a time: asked for all of them together, Postgres reads every row of theirs to sort it.
    for part in rules.parts_to_see(approver=approver):
        settled = _timed(part).exclude(status=Status.PENDING, decide_by__gt=Now())
        newest += settled.order_by("-requested_at", "id")[:limit]
    newest.sort(key=lambda row: row.requested_at, reverse=True)
    return newest[:limit]


def list_recent_of(*, requester: Principal, limit: int) -> list[Confirmation]:
    """What this requester asked lately, the newest at the top."""
    theirs = Confirmation.objects.filter(
        requester_client_id=requester.client_id, requester_subject=requester.subject
    )
    return list(_timed(theirs).order_by("-requested_at", "id")[:limit])


def list_open_of_client(*, client_id: str, subject: str | None = None) -> list[Confirmation]:
    """The questions and unspent approvals of this program, for one person or for all whom it acts for."""
    theirs = Confirmation.objects.filter(requester_client_id=client_id, status__in=OPEN)
    if subject is not None:
        theirs = theirs.filter(requester_subject=subject)
    return list(theirs.order_by("id"))


def count_approvals(*, confirmations: Iterable[Confirmation]) -> Counter[uuid.UUID]:
    """How many people have approved each of these so far. One query, however many they are."""
    approvals = Decision.objects.filter(confirmation__in=list(confirmations), verdict=Verdict.APPROVE)
    return Counter(approvals.values_list("confirmation_id", flat=True))


def list_without_outcome(*, older_than: dt.timedelta) -> QuerySet[Confirmation]:
    """What was redeemed and never reported on: whether it happened, a person has to find out."""
    redeemed = Confirmation.objects.filter(status=Status.REDEEMED, redeemed_at__lt=Now() - older_than)
    return _timed(redeemed).filter(outcome__isnull=True).order_by("redeemed_at")


def list_for_operator() -> QuerySet[Confirmation]:
    """All of them, for the review queue; the caller has checked the permission to view confirmations."""
    return _timed(Confirmation.objects.all())


def log_is_intact(*, confirmation_id: uuid.UUID) -> bool:
    """Whether the log of this confirmation is whole: no line changed, missing or added."""
    found = rows.execute(CHAIN, [confirmation_id, confirmation_id])
    return bool(found and found[0][0])


def _timed(confirmations: QuerySet[Confirmation]) -> QuerySet[Confirmation]:
    """Ask Postgres's clock with the row, so that `effective_status` is a fact and not a guess."""
    return confirmations.select_related("outcome").annotate(overdue=rows.IS_OVERDUE)

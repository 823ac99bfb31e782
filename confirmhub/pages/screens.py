"""What a page shows of a confirmation, as plain values: rows in, words and pieces out.

Templates get nothing else. A value from outside passes `values.value`, and with it `display`, right here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.utils import timezone

from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation, Decision
from confirmhub.confirmations.screen import check_value
from confirmhub.confirmations.states import OPEN, Assurance, Status, Verdict
from confirmhub.oauth.clients import OURSELVES
from confirmhub.pages import askers, drift, lists, record, stops, values, words
from confirmhub.pages.askers import Asker
from confirmhub.pages.drift import Drift
from confirmhub.pages.record import Happening
from confirmhub.pages.stops import Stop
from confirmhub.pages.values import Gone, Row, Value
from confirmhub.pages.words import Moment, State


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's recorded decision."""

    approver: Value
    approved: bool
    by_host: bool
    """Their host said that they said so; else they decided on a page of ours."""
    reason: Value | None
    at: Moment
    seen: str


@dataclass(frozen=True, slots=True)
class Screen:
    """A confirmation as a whole page."""

    id: UUID
    question: Value
    action: Value
    audience: Value
    arguments: Sequence[Row]
    gone: Sequence[Gone]
    compared_with: Moment | None
    differs: bool
    """Any argument differs from those of the question that it is compared with."""
    drift: Drift | None
    stops: Sequence[Stop]
    """What keeps a yes to it from being used at present."""
    facts: Sequence[tuple[Value, Value]]
    pinned: bool
    usable: bool
    summary: Value | None
    asker: Asker
    account: Value | None
    for_itself: bool
    """The requester is a program that acts for no person."""
    asked: Moment
    due: Moment
    left: str
    now: str
    used_within: str
    usable_until: Moment | None
    spent: Moment | None
    approvals_needed: int
    votes: Sequence[Vote]
    my_vote: Vote | None
    state: State
    standing: str
    """What the open page is compared with, to tell that something has changed; empty where nothing can."""
    waiting: bool
    fresh_within: str
    """How fresh a sign-in the policy asks for, where the viewer's is older; else empty."""
    revocable: bool
    why: Value | None
    """The reason that was given where it did not end by a vote: by an operator, the requester, the guard."""
    outcome: Value | None
    view_digest: str
    seal: str
    log: Sequence[Happening]
    log_seal: str
    log_intact: bool
    rehearsal: bool


def screen(
    confirmation: Confirmation,
    *,
    viewer: User,
    before: Confirmation | None = None,
    same: Confirmation | None = None,
) -> Screen:
    """Everything that the confirm page and the receipt show.

    `before` is what was approved last of this action for this requester, to mark what differs from it;
    `same` the last with the very same arguments.
    """
    now = timezone.now()
    status = confirmation.effective_status
    decisions = list(confirmation.decisions.select_related("approver").order_by("decided_at"))
    waiting = status is Status.PENDING
    # The record is for the receipt; while the question waits there is nothing to tell.
    events = [] if waiting else list(confirmation.events.order_by("seq"))
    mine = next((decision for decision in decisions if decision.approver_id == viewer.pk), None)
    votes = [_vote(decision) for decision in decisions]
    names = askers.names({confirmation.requester_subject}, viewer=viewer)
    requester = askers.asker(confirmation.requester_client_id)
    arguments, gone = values.rows(confirmation.argument_items), list[Gone]()
    if before is not None:
        arguments, gone = values.compared(confirmation.argument_items, before=before.argument_items)
    return Screen(
        id=confirmation.id,
        question=values.value(confirmation.question),
        action=values.value(confirmation.action),
        audience=values.value(confirmation.audience),
        arguments=arguments,
        gone=gone,
        compared_with=_moment(before.settled_at) if before else None,
        differs=bool(gone) or any(row.news for row in arguments),
        drift=drift.find(confirmation, same, viewer=viewer),
        stops=stops.covering(confirmation, viewer=viewer) if status in OPEN else [],
        facts=[(values.value(label), values.value(fact)) for label, fact in confirmation.fact_items],
        pinned=bool(confirmation.fingerprint),
        usable=status in OPEN,
        summary=values.value(confirmation.summary) if confirmation.summary else None,
        asker=requester,
        account=askers.account(confirmation, viewer=viewer, names=names),
        for_itself=askers.is_service(confirmation.requester_subject),
        asked=words.moment(confirmation.requested_at),
        due=words.moment(confirmation.decide_by),
        left=words.span(confirmation.decide_by - now),
        now=now.isoformat(),
        used_within=words.length(confirmation.redeem_within),
        usable_until=_moment(confirmation.redeem_by),
        spent=_moment(confirmation.redeemed_at),
        approvals_needed=confirmation.approvals_needed,
        votes=votes,
        my_vote=votes[decisions.index(mine)] if mine else None,
        state=lists.state_of(confirmation),
        standing="" if lists.is_over(confirmation) else lists.standing(confirmation, votes=len(votes)),
        waiting=waiting,
        fresh_within=_fresh_within(confirmation, viewer=viewer, now=now),
        revocable=status is Status.APPROVED,
        why=_why(confirmation, votes),
        outcome=_outcome_detail(confirmation),
        view_digest=bytes(confirmation.view_digest).hex(),
        seal=check_value(confirmation.view_digest),
        log=record.happenings(events, requester=requester, viewer=viewer),
        log_seal=check_value(events[-1].hash) if events else "",
        log_intact=waiting or queries.log_is_intact(confirmation_id=confirmation.id),
        rehearsal=confirmation.requester_client_id == OURSELVES
        and confirmation.requester_subject == str(viewer.pk),
    )


def _vote(decision: Decision) -> Vote:
    return Vote(
        approver=values.value(decision.approver.get_username()),
        approved=Verdict(decision.verdict) is Verdict.APPROVE,
        by_host=Assurance(decision.assurance) is Assurance.HOST,
        reason=values.value(decision.reason) if decision.reason else None,
        at=words.moment(decision.decided_at),
        seen=check_value(decision.view_digest),
    )


def _why(confirmation: Confirmation, votes: Sequence[Vote]) -> Value | None:
    # What a person gave as the reason of their denial stands with their vote.
    if not confirmation.settled_reason or any(not vote.approved for vote in votes):
        return None
    return values.value(confirmation.settled_reason)


def _fresh_within(confirmation: Confirmation, *, viewer: User, now: dt.datetime) -> str:
    within: dt.timedelta | None = confirmation.sign_in_within
    if within is None or (viewer.last_login is not None and viewer.last_login > now - within):
        return ""
    return words.length(within)


def _outcome_detail(confirmation: Confirmation) -> Value | None:
    try:
        detail: str = confirmation.outcome.detail
    except ObjectDoesNotExist:
        return None
    return values.value(detail) if detail else None


def _moment(at: dt.datetime | None) -> Moment | None:
    return words.moment(at) if at else None

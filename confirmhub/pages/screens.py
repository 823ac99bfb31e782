"""What a page shows of a confirmation, as plain values: rows in, words and pieces out.

Templates get nothing else. A value from outside passes `values.value`, and with it `display`, right here.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.utils import timezone

from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation, Decision, Event
from confirmhub.confirmations.states import OPEN, Result, Status, Verdict
from confirmhub.oauth import clients
from confirmhub.pages import values, words
from confirmhub.pages.values import Gone, Row, Value
from confirmhub.pages.words import Moment, State

# The requester of the rehearsal on the first page: us. No OAuth client has an id of this form.
TRY_CLIENT = "confirmhub:try"

# Who did something, as the ledger writes it into the log.
_ACTOR = re.compile(r"(?:client (?P<client>.+) for )?user (?P<subject>[0-9]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks. `host` is what was verified, or where its answers go; `name` is its own word for itself."""

    host: Value
    verified: bool
    name: Value | None
    redirect: Value | None
    since: str
    ours: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A confirmation as one row of a list."""

    id: UUID
    question: Value
    action: Value
    asker: Asker
    account: Value | None
    asked: Moment
    age: str
    due: Moment
    left: str
    state: State
    opens: bool
    view_digest: str
    requester: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Crowd:
    """Several questions of one requester that wait at once. `shown` is what denying them all would send."""

    asker: Asker
    account: Value | None
    count: int
    shown: str


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's recorded decision."""

    approver: Value
    approved: bool
    reason: Value | None
    at: Moment
    seen: str


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the event log."""

    what: str
    actor: Value
    account: Value | None
    at: Moment


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
    facts: Sequence[tuple[Value, Value]]
    pinned: bool
    usable: bool
    summary: Value | None
    asker: Asker
    account: Value | None
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
    waiting: bool
    fresh_within: str
    """How fresh a sign-in the policy asks for, where the viewer's is older; else empty."""
    revocable: bool
    taken_back: Value | None
    outcome: Value | None
    view_digest: str
    seal: str
    log: Sequence[Happening]
    log_seal: str
    log_intact: bool
    rehearsal: bool


def lines(confirmations: Sequence[Confirmation], *, viewer: User) -> list[Line]:
    """Rows for the inbox and the history. Asks once for each requester, however many rows are theirs."""
    now = timezone.now()
    names = _names({row.requester_subject for row in confirmations}, viewer=viewer)
    askers = {client: asker(client) for client in {row.requester_client_id for row in confirmations}}
    return [
        Line(
            id=row.id,
            question=values.value(row.question),
            action=values.value(row.action),
            asker=askers[row.requester_client_id],
            account=_account(row, viewer=viewer, names=names),
            asked=words.moment(row.requested_at),
            age=words.ago(now - row.requested_at),
            due=words.moment(row.decide_by),
            left=words.span(row.decide_by - now),
            state=words.state(row.effective_status, _result(row)),
            # What nobody decided in time has no page: too late reads as never was.
            opens=not is_too_late(row),
            view_digest=bytes(row.view_digest).hex(),
            requester=(row.requester_client_id, row.requester_subject),
        )
        for row in confirmations
    ]


def crowds(waiting: Sequence[Line]) -> list[Crowd]:
    """The requesters of two or more of these questions."""
    theirs: dict[tuple[str, str], list[Line]] = {}
    for row in waiting:
        theirs.setdefault(row.requester, []).append(row)
    return [
        Crowd(
            asker=rows[0].asker,
            account=rows[0].account,
            count=len(rows),
            shown=" ".join(f"{row.id}:{row.view_digest}" for row in rows),
        )
        for rows in theirs.values()
        if len(rows) > 1
    ]


def screen(confirmation: Confirmation, *, viewer: User, before: Confirmation | None = None) -> Screen:
    """Everything that the confirm page and the receipt show.

    `before` is what was approved last of this action for this requester, to mark what differs from it.
    """
    now = timezone.now()
    status = confirmation.effective_status
    decisions = list(confirmation.decisions.select_related("approver").order_by("decided_at"))
    waiting = status is Status.PENDING
    # The record is for the receipt; while the question waits there is nothing to tell.
    events = [] if waiting else list(confirmation.events.order_by("seq"))
    mine = next((decision for decision in decisions if decision.approver_id == viewer.pk), None)
    votes = [_vote(decision) for decision in decisions]
    actors = [match for event in events if (match := _ACTOR.fullmatch(event.actor))]
    names = _names({confirmation.requester_subject, *(match["subject"] for match in actors)}, viewer=viewer)
    requester = asker(confirmation.requester_client_id)
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
        facts=[(values.value(label), values.value(fact)) for label, fact in confirmation.fact_items],
        pinned=bool(confirmation.fingerprint),
        usable=status in OPEN,
        summary=values.value(confirmation.summary) if confirmation.summary else None,
        asker=requester,
        account=_account(confirmation, viewer=viewer, names=names),
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
        state=words.state(status, _result(confirmation)),
        waiting=waiting,
        fresh_within=_fresh_within(confirmation, viewer=viewer, now=now),
        revocable=status is Status.APPROVED,
        taken_back=values.value(confirmation.settled_reason)
        if status is Status.REVOKED and confirmation.settled_reason
        else None,
        outcome=_outcome_detail(confirmation),
        view_digest=bytes(confirmation.view_digest).hex(),
        seal=values.digest_head(confirmation.view_digest),
        log=[_happening(event, requester=requester, names=names) for event in events],
        log_seal=values.digest_head(events[-1].hash) if events else "",
        log_intact=waiting or queries.log_is_intact(confirmation_id=confirmation.id),
        rehearsal=confirmation.requester_client_id == TRY_CLIENT
        and confirmation.requester_subject == str(viewer.pk),
    )


def last_approved(confirmation: Confirmation, recent: Sequence[Confirmation]) -> Confirmation | None:
    """The newest of these that is the same action at the same place, and was approved."""
    return next(
        (
            row
            for row in recent
            if row.id != confirmation.id
            and (row.action, row.audience) == (confirmation.action, confirmation.audience)
            and row.redeem_by is not None
        ),
        None,
    )


def is_too_late(confirmation: Confirmation) -> bool:
    """It expired before anybody decided."""
    return confirmation.effective_status is Status.EXPIRED and confirmation.redeem_by is None


def asker(client_id: str) -> Asker:
    """Who this client is, as far as we know it."""
    if client_id == TRY_CLIENT:
        return Asker(values.value("confirmhub"), verified=True, name=None, redirect=None, since="", ours=True)
    label = clients.describe(client_id=client_id)
    return Asker(
        host=values.value(label.host),
        verified=label.verified,
        name=values.value(label.name) if label.name else None,
        redirect=values.value(label.redirect) if label.redirect else None,
        since=words.day(label.since) if label.since else "",
        ours=False,
    )


def _names(subjects: set[str], *, viewer: User) -> dict[str, str]:
    """The sign-in names of these accounts, by subject, in at most one query."""
    mine = str(viewer.pk)
    keys = [
        int(subject)
        for subject in subjects - {mine}
        if subject.isascii() and subject.isdigit() and len(subject) < 19
    ]
    others = User.objects.filter(pk__in=keys) if keys else ()
    return {mine: viewer.get_username()} | {str(user.pk): user.get_username() for user in others}


def _happening(event: Event, *, requester: Asker, names: dict[str, str]) -> Happening:
    """A line of the log, with people by name. A name may change, so the log itself holds the number."""
    match = _ACTOR.fullmatch(event.actor)
    name = match and names.get(match["subject"])
    at = words.moment(event.at)
    if not match or not name:
        return Happening(event.kind, values.value(event.actor), None, at)
    person = values.value(name)
    if not match["client"]:
        return Happening(event.kind, person, None, at)
    # A client that we no longer know has no host to show.
    client = requester.host if requester.since or requester.ours else values.value(match["client"])
    return Happening(event.kind, client, person, at)


def _vote(decision: Decision) -> Vote:
    return Vote(
        approver=values.value(decision.approver.get_username()),
        approved=Verdict(decision.verdict) is Verdict.APPROVE,
        reason=values.value(decision.reason) if decision.reason else None,
        at=words.moment(decision.decided_at),
        seen=values.digest_head(decision.view_digest),
    )


def _account(confirmation: Confirmation, *, viewer: User, names: dict[str, str]) -> Value | None:
    """The account that is acted for; None where it is the viewer's own."""
    subject = confirmation.requester_subject
    if subject == str(viewer.pk):
        return None
    return values.value(names.get(subject, f"account {subject}"))


def _fresh_within(confirmation: Confirmation, *, viewer: User, now: dt.datetime) -> str:
    within: dt.timedelta | None = confirmation.sign_in_within
    if within is None or (viewer.last_login is not None and viewer.last_login > now - within):
        return ""
    return words.length(within)


def _result(confirmation: Confirmation) -> Result | None:
    try:
        return Result(confirmation.outcome.result)
    except ObjectDoesNotExist:
        return None


def _outcome_detail(confirmation: Confirmation) -> Value | None:
    try:
        detail: str = confirmation.outcome.detail
    except ObjectDoesNotExist:
        return None
    return values.value(detail) if detail else None


def _moment(at: dt.datetime | None) -> Moment | None:
    return words.moment(at) if at else None

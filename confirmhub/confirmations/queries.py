"""Every read of confirmations. The first word after the verb says for whom, and so who may see what."""

from __future__ import annotations

import itertools
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import BooleanField, F, Func, Q, QuerySet, Value
from django.db.models.functions import Now

from confirmhub.confirmations import errors, rows, rules
from confirmhub.confirmations.models import Confirmation, Decision, Halt
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


class Texts(NamedTuple):
    """What a search of settled confirmations looks through, as raw as it was asked. Never to show."""

    question: str
    action: str
    summary: str
    requester_client_id: str
    arguments: str
    """Canonical ASCII JSON."""


class Cover(NamedTuple):
    """What a stop of redemptions is about."""

    open: int
    """Questions and unspent approvals that it covers now."""

    ever: bool
    """Whether anything that it covers was ever asked."""


class Standing(NamedTuple):
    """How a confirmation stands, with what its redemption is compared with."""

    id: uuid.UUID
    status: Status
    """As a fact, by the time of the query."""

    digest: bytes
    fingerprint: str
    view_digest: bytes


_STANDINGS = f"""
SELECT asked.n, {rows.STANDING}, c.digest, c.fingerprint, c.view_digest
FROM json_to_recordset(%s) AS asked (n integer, id uuid, client_id text, subject text)
JOIN confirmations_confirmation AS c
    ON c.id = asked.id AND c.requester_client_id = asked.client_id AND c.requester_subject = asked.subject
"""  # noqa: S608 - a part that is ours


def get_for_requester(*, confirmation_id: uuid.UUID, requester: Principal) -> Confirmation:
    """A requester's own confirmation, with its outcome.

    Raises:
        NotFound: No such confirmation, or not theirs.
    """
    found = _timed(rows.of(confirmation_id, requester)).first()
    if found is None:
        raise errors.NotFound
    return found


def statement_of_standings(*, asked: Sequence[tuple[uuid.UUID, Principal]]) -> tuple[str, list[object]]:
    """The query for how these stand, each if it is this requester's own; for who runs it elsewhere.

    Every guarded call begins with this, so it reads little, of many at once.
    """
    lines = [
        {"n": n, "id": str(id_), "client_id": requester.client_id, "subject": requester.subject}
        for n, (id_, requester) in enumerate(asked)
    ]
    return _STANDINGS, [json.dumps(lines)]


def read_standings(
    *, asked: Sequence[tuple[uuid.UUID, Principal]], rows: Iterable[tuple[Any, ...]]
) -> dict[tuple[uuid.UUID, Principal], Standing]:
    """What that query found."""
    return {
        asked[n]: Standing(asked[n][0], Status(status), bytes(digest), fingerprint, bytes(view_digest))
        for n, status, digest, fingerprint, view_digest in rows
    }


def get_for_approver(*, confirmation_id: uuid.UUID, approver: User) -> Confirmation:
    """A confirmation that this person may decide on, could have, or that their own agent asked for.

    Raises:
        NotFound: No such confirmation, or not theirs.
    """
    found = _timed(rules.may_see(approver=approver).filter(id=confirmation_id)).first()
    if found is None:
        raise errors.NotFound
    return found


def get_for_approvers(
    *, pairs: Collection[tuple[uuid.UUID, int]]
) -> dict[tuple[uuid.UUID, int], Confirmation]:
    """Of these pairs of a confirmation and a user's key, those who may see it. Three queries in all."""
    people = {user_id for _, user_id in pairs}
    active = set(User.objects.filter(pk__in=people, is_active=True).values_list("pk", flat=True))
    groups: dict[int, set[int]] = defaultdict(set)
    memberships = User.groups.through.objects.filter(user__in=people)
    for user_id, group_id in memberships.values_list("user_id", "group_id"):
        groups[user_id].add(group_id)
    found = {row.id: row for row in _timed(Confirmation.objects.filter(id__in={id_ for id_, _ in pairs}))}
    return {
        (id_, user_id): found[id_]
        for id_, user_id in pairs
        if id_ in found
        and user_id in active
        and rules.sees(confirmation=found[id_], user_id=user_id, groups=groups[user_id])
    }


def may_decide(*, confirmation: Confirmation, approver: User) -> bool:
    """Whether the policy lets this person decide on this confirmation, which they may see."""
    return rules.may_decide(confirmation=confirmation, approver=approver)


def list_waiting_for(*, approver: User) -> QuerySet[Confirmation]:
    """What waits for this person's decision, the one due first at the top."""
    theirs = _timed(rules.waiting_for(approver=approver))
    return theirs.filter(status=Status.PENDING, decide_by__gt=Now()).order_by("decide_by", "id")


def list_settled_for(*, approver: User, limit: int) -> list[Confirmation]:
    """What no longer waits for this person, the newest at the top."""
    return _whole([key for key, *_ in _newest_settled(approver, limit)])


def find_settled_for(
    *, approver: User, matches: Callable[[Texts], bool], among: int, limit: int
) -> list[Confirmation]:
    """Those that match, the newest at the top, of the newest `among` that no longer wait for this person.

    Only what is looked through is read of so many; what is found is read whole.
    """
    newest = _newest_settled(approver, among, *Texts._fields)
    found = (key for key, _, *texts in newest if matches(Texts(*texts)))
    return _whole(list(itertools.islice(found, limit)))


def list_recent_of(*, requester: Principal, limit: int) -> list[Confirmation]:
    """What this requester asked lately, the newest at the top."""
    return list(_timed(rows.asked_by(requester)).order_by("-requested_at", "id")[:limit])


def last_approved_like(*, confirmation: Confirmation, among: int) -> Confirmation | None:
    """The newest approved one of the same action at the same place, of this requester's newest `among`."""
    return _approved_before(
        confirmation, among, action=confirmation.action, audience=confirmation.audience
    ).first()


def last_approved_same(*, confirmation: Confirmation, among: int) -> Confirmation | None:
    """The newest approved one with the very same arguments, of this requester's newest `among`."""
    return _timed(_approved_before(confirmation, among, digest=confirmation.digest)).first()


def requester_of(*, confirmation_id: uuid.UUID, client_id: str) -> Principal:
    """Whom this client asked for, in this confirmation.

    Raises:
        NotFound: No such confirmation, or not theirs.
    """
    theirs = Confirmation.objects.filter(id=confirmation_id, requester_client_id=client_id)
    subject = theirs.values_list("requester_subject", flat=True).first()
    if subject is None:
        raise errors.NotFound
    return Principal(client_id=client_id, subject=subject)


def requesters_of(*, ids: Collection[uuid.UUID]) -> QuerySet[Confirmation, tuple[uuid.UUID, str, str]]:
    """The query for id, client and subject of all of these, for who runs it on another connection."""
    asked = Confirmation.objects.filter(id__in=ids)
    return asked.values_list("id", "requester_client_id", "requester_subject")


def list_page(
    *,
    client_id: str,
    subject: str | None,
    status: str | None,
    action: str | None,
    before: uuid.UUID | None,
    limit: int,
) -> list[Confirmation]:
    """What this client asked, for one subject or for all, the newest at the top; ids grow with time."""
    theirs = Confirmation.objects.filter(requester_client_id=client_id)
    if subject is not None:
        theirs = theirs.filter(requester_subject=subject)
    if action is not None:
        theirs = theirs.filter(action=action)
    if before is not None:
        theirs = theirs.filter(id__lt=before)
    if status is not None:
        theirs &= _standing_at(status)
    return list(_timed(theirs).prefetch_related("decisions").order_by("-id")[:limit])


def approver(*, subject: str) -> User:
    """The person behind a subject, while active.

    Raises:
        NotFound: There is none.
    """
    found = rules.acting_user(subject=subject).first()
    if found is None:
        raise errors.NotFound
    return found


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


def list_newest(*, status: str | None, client_id: str | None, limit: int) -> list[Confirmation]:
    """The newest of all, for operators; ids grow with time."""
    if client_id is not None:
        return list_page(
            client_id=client_id, subject=None, status=status, action=None, before=None, limit=limit
        )
    found = _timed(Confirmation.objects.all()) if status is None else _timed(_standing_at(status))
    return list(found.order_by("-id")[:limit])


def get_for_operator(*, confirmation_id: uuid.UUID) -> Confirmation:
    """Any confirmation; the caller has checked the permission, or works on the machine itself.

    Raises:
        NotFound: There is none.
    """
    found = _timed(Confirmation.objects.filter(id=confirmation_id)).first()
    if found is None:
        raise errors.NotFound
    return found


def list_halts() -> list[Halt]:
    """The stops of redemptions that are in force, the newest at the top."""
    return list(Halt.objects.filter(lifted_at__isnull=True).select_related("set_by"))


def clients_open_for(*, approver: User, client_ids: Collection[str]) -> set[str]:
    """Those of these clients of which something is open that this person may see."""
    theirs = rules.may_see(approver=approver).filter(requester_client_id__in=client_ids, status__in=OPEN)
    return set(theirs.values_list("requester_client_id", flat=True))


def covered_by(*, halt: Halt) -> Cover:
    """What a stop covers, to tell one that is meant from one with a slip of the pen in it."""
    like = Func(
        F("action"),
        Value(halt.action_like),
        template="%(expressions)s",
        arg_joiner=" LIKE ",
        output_field=BooleanField(),
    )
    alike = Confirmation.objects.filter(like)
    if halt.client_id:
        alike = alike.filter(requester_client_id=halt.client_id)
    if halt.subject:
        alike = alike.filter(requester_subject=halt.subject)
    return Cover(alike.filter(status__in=OPEN).exclude(rows.OVERDUE).count(), alike.exists())


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


def _standing_at(status: str) -> QuerySet[Confirmation]:
    """With this status in fact: what is overdue has expired."""
    if status == Status.EXPIRED:
        return Confirmation.objects.filter(Q(status=Status.EXPIRED) | rows.OVERDUE)
    return Confirmation.objects.filter(status=status).exclude(rows.OVERDUE)


def _approved_before(confirmation: Confirmation, among: int, **alike: object) -> QuerySet[Confirmation]:
    requester = Principal(confirmation.requester_client_id, confirmation.requester_subject)
    newest = rows.asked_by(requester).order_by("-requested_at", "id").values("id")[:among]
    approved = Confirmation.objects.filter(id__in=newest, redeem_by__isnull=False, **alike)
    return approved.exclude(id=confirmation.id).order_by("-requested_at", "id")


def _newest_settled(approver: User, limit: int, *columns: str) -> Iterable[tuple[Any, ...]]:
    """Id, time and these columns of what was settled, the newest first."""
    # The newest of each part, then of these: of all parts together, Postgres would read and sort every row.
    first, *others = [
        part.exclude(status=Status.PENDING, decide_by__gt=Now())
        .order_by("-requested_at", "id")
        .values_list("id", "requested_at", *columns)[:limit]
        for part in rules.parts_to_see(approver=approver)
    ]
    return first.union(*others, all=True).order_by("-requested_at", "id")[:limit] if others else first


def _whole(ids: list[uuid.UUID]) -> list[Confirmation]:
    """These rows, in this order."""
    place = {key: number for number, key in enumerate(ids)}
    return sorted(_timed(Confirmation.objects.filter(id__in=ids)), key=lambda row: place[row.id])

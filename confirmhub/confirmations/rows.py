"""What the ledger's moves are made of: statements, the chained log, the refusal that a row's state means."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now
from psycopg import errors as postgres

from confirmhub.confirmations import errors
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Halt, Hook, Notice
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import OPEN, Status

OVERDUE = Q(status=Status.PENDING, decide_by__lte=Now()) | Q(status=Status.APPROVED, redeem_by__lte=Now())
IS_OVERDUE = ExpressionWrapper(OVERDUE, BooleanField())  # to annotate a row with
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
CHANGE = "confirmations.change_confirmation"  # the permission of operators
MAX_REASON = 280  # characters
CHANNEL = "confirmhub_settled"  # of Postgres; tells the id of what has left pending
# How the row `c` stands, with expiry as the fact it is; the same as OVERDUE.
STANDING = """CASE
    WHEN c.status = 'pending' AND c.decide_by <= statement_timestamp() THEN 'expired'
    WHEN c.status = 'approved' AND c.redeem_by <= statement_timestamp() THEN 'expired'
    ELSE c.status END"""

# One statement checks and spends, and writes the event: of two redemptions the second waits for the row,
# reads its new status, and updates nothing.
REDEEM = """
WITH asked AS (
    SELECT * FROM json_to_recordset(%s) AS asked(
        id uuid, client_id text, subject text, audience text, digest text, key text, actor text)
), halts AS (
    -- Not only read: the lock that this takes on the table is what `oversight.halt` waits for.
    SELECT * FROM confirmations_halt WHERE lifted_at IS NULL FOR KEY SHARE
), spent AS (
    UPDATE confirmations_confirmation AS c
    SET status = 'redeemed', redeemed_at = statement_timestamp(), redemption_key = asked.key,
        event_count = c.event_count + 1,
        event_head = confirmhub_event_hash(
            c.event_head, c.id, c.event_count + 1, 'redeemed', asked.actor, statement_timestamp(), '{}')
    FROM asked
    -- By the id alone: where the last ANALYZE saw no row with such a status, its index looks as good.
    WHERE c.id = asked.id AND (
        c.status = 'approved' AND c.redeem_by > statement_timestamp()
        AND c.requester_client_id = asked.client_id AND c.requester_subject = asked.subject
        AND c.audience = asked.audience AND c.digest = decode(asked.digest, 'hex')) IS TRUE
        AND NOT EXISTS (
            SELECT FROM halts AS halt WHERE halt.client_id IN ('', c.requester_client_id)
                AND halt.subject IN ('', c.requester_subject) AND c.action LIKE halt.action_like)
    RETURNING c.id, c.event_count, c.event_head, c.redeemed_at, asked.actor
), logged AS (
    INSERT INTO confirmations_event (confirmation_id, seq, kind, actor, at, detail, hash)
    SELECT id, event_count, 'redeemed', actor, redeemed_at, '{}', event_head FROM spent
)
SELECT id, redeemed_at FROM spent
"""


_LOG = """
WITH chained AS (
    UPDATE confirmations_confirmation
    SET event_count = event_count + 1,
        event_head = confirmhub_event_hash(
            event_head, id, event_count + 1, %(kind)s, %(actor)s, statement_timestamp(), %(detail)s)
    WHERE id = %(id)s
    RETURNING id, event_count, event_head
)
INSERT INTO confirmations_event (confirmation_id, seq, kind, actor, at, detail, hash)
SELECT id, event_count, %(kind)s, %(actor)s, statement_timestamp(), %(detail)s, event_head FROM chained
"""


# The first few are on the record; a storm of replays finds the bound, or the row locked, and writes nothing.
_REFUSED = """
WITH refused AS (
    SELECT id FROM confirmations_confirmation WHERE id = %(id)s AND refusals < 10
    FOR NO KEY UPDATE SKIP LOCKED
), chained AS (
    UPDATE confirmations_confirmation AS c
    SET refusals = c.refusals + 1, event_count = c.event_count + 1,
        event_head = confirmhub_event_hash(
            c.event_head, c.id, c.event_count + 1, 'refused', %(actor)s, statement_timestamp(), %(detail)s)
    FROM refused WHERE c.id = refused.id
    RETURNING c.id, c.event_count, c.event_head
)
INSERT INTO confirmations_event (confirmation_id, seq, kind, actor, at, detail, hash)
SELECT id, event_count, 'refused', %(actor)s, statement_timestamp(), %(detail)s, event_head FROM chained
"""


# Those who were told to decide hear that they need not any more.
_TELL_ASKED = """
INSERT INTO confirmations_notice (confirmation_id, kind, recipient_id, attempts)
SELECT DISTINCT confirmation_id, 'settled', recipient_id, 0 FROM confirmations_notice
WHERE confirmation_id = %s AND kind IN ('asked', 'reminder', 'escalated') AND recipient_id <> %s
    AND (sent_at IS NOT NULL OR lease_until > clock_timestamp())
    AND given_up_at IS NULL AND withdrawn_at IS NULL
ON CONFLICT DO NOTHING
"""


class Redemption(NamedTuple):
    """One redemption to be made."""

    confirmation_id: uuid.UUID
    requester: Principal
    action: Action
    redemption_key: str


def redeem_parameters(asked: Sequence[Redemption]) -> list[object]:
    """The parameter of `REDEEM` for these: JSON, since a list for each column takes longer to make."""
    return [
        json.dumps(
            [
                {
                    "id": str(each.confirmation_id),
                    "client_id": each.requester.client_id,
                    "subject": each.requester.subject,
                    "audience": each.action.audience,
                    "digest": each.action.digest.hex(),
                    "key": each.redemption_key,
                    "actor": name(each.requester),
                }
                for each in asked
            ]
        )
    ]


def check_key(key: str, *, of: str) -> None:
    """Hold a caller's key to what is stored.

    Raises:
        InvalidAction: It is not 1 to 200 printable ASCII characters.
    """
    if not _KEY.fullmatch(key):
        raise errors.InvalidAction(f"The {of} key must be 1 to 200 printable ASCII characters.")


def check_reason(reason: str, *, required: bool = False) -> None:
    """Hold a person's reason to what is stored and shown.

    Raises:
        InvalidAction: It is longer than 280 characters, or there is none where one is required.
    """
    if len(reason) > MAX_REASON:
        raise errors.InvalidAction(f"A reason has at most {MAX_REASON} characters.")
    if required and not reason.strip():
        raise errors.InvalidAction("Give a reason; it stands in the record.")


def check_permission(operator: User, permission: str) -> None:
    """Hold an operator to their permissions, as the database has them now.

    Raises:
        NotPermitted: They lack it, or their account is deactivated.
    """
    now = User.objects.filter(pk=operator.pk, is_active=True).first()
    if now is None or not now.has_perm(permission):
        raise errors.NotPermitted


def refused_when_busy[**P, R](move: Callable[P, R]) -> Callable[P, R]:
    """Turn a lock or statement time-out, or a deadlock, into a refusal: Postgres has undone all of it."""

    @wraps(move)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return move(*args, **kwargs)
        except OperationalError as exc:
            gave_up = (postgres.LockNotAvailable, postgres.QueryCanceled, postgres.DeadlockDetected)
            if isinstance(exc.__cause__, gave_up):
                raise errors.Busy from exc
            raise

    return guarded


def execute(statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run one statement on Django's connection; return its rows, if it has any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def log(confirmation_id: uuid.UUID, kind: str, *, actor: str, **detail: str) -> None:
    """Append one event to the confirmation's chain. The row is locked by the move that it tells of."""
    text = json.dumps(detail, sort_keys=True, separators=(",", ":"))
    execute(_LOG, {"id": confirmation_id, "kind": str(kind), "actor": actor, "detail": text})


def log_refusal(confirmation_id: uuid.UUID, *, actor: Principal, refusal: errors.ConfirmationError) -> None:
    """Record that its requester tried to redeem it and was refused; of many attempts the first ten."""
    detail = json.dumps({"code": refusal.code}, separators=(",", ":"))
    execute(_REFUSED, {"id": confirmation_id, "actor": name(actor), "detail": detail})


def name(actor: User | Principal) -> str:
    """Who did it, for the log."""
    if isinstance(actor, Principal):
        return f"client {actor.client_id} for user {actor.subject}"
    return f"user {actor.pk}"


def asked_by(requester: Principal) -> QuerySet[Confirmation]:
    return Confirmation.objects.filter(
        requester_client_id=requester.client_id, requester_subject=requester.subject
    )


def of(confirmation_id: uuid.UUID, requester: Principal) -> QuerySet[Confirmation]:
    return asked_by(requester).filter(id=confirmation_id)


def expire(ids: list[uuid.UUID]) -> int:
    """Expire the overdue ones of these; say how many."""
    expired = 0
    for confirmation_id in ids:
        row = Confirmation.objects.filter(OVERDUE, id=confirmation_id)
        was_pending = row.filter(status=Status.PENDING).update(status=Status.EXPIRED, settled_at=Now())
        if not was_pending and not row.update(status=Status.EXPIRED):
            continue
        expired += 1
        log(confirmation_id, "expired", actor="clock")
        if was_pending:
            left_pending(confirmation_id)
        else:
            tell_service("lapsed", confirmation_id)
    return expired


def tell(people: Iterable[User], kind: str, confirmation: Confirmation) -> None:
    """Write a notice for each, which is sent once this is committed."""
    Notice.objects.bulk_create(
        Notice(confirmation=confirmation, kind=kind, recipient=person) for person in people
    )


def left_pending(confirmation_id: uuid.UUID, *, by: User | None = None) -> None:
    """Tell the service that asked, all who were told to decide but who settled it, and those who wait."""
    tell_service("settled", confirmation_id)
    execute(_TELL_ASKED, [confirmation_id, by.pk if by else 0])
    execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(confirmation_id)])


def tell_service(kind: str, confirmation_id: uuid.UUID) -> None:
    """Write a notice for the service that asked, where it has a hook."""
    of_asker = Confirmation.objects.filter(id=confirmation_id).values("requester_client_id")
    hooks = Hook.objects.filter(client_id__in=of_asker, is_active=True)
    Notice.objects.bulk_create(
        (Notice(confirmation_id=confirmation_id, kind=kind, hook=hook) for hook in hooks),
        ignore_conflicts=True,
    )


def take_turns(name: str) -> None:
    """Let one transaction at a time go on past this point, of those that give the same name."""
    execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"confirmhub {name}"])


def halt_on(confirmation: Confirmation) -> errors.Halted | None:
    """The refusal of the stop that covers this confirmation, if one is in force."""
    stops = Halt.objects.raw(
        """SELECT id, reason FROM confirmations_halt
        WHERE lifted_at IS NULL AND client_id IN ('', %s) AND subject IN ('', %s) AND %s LIKE action_like
        ORDER BY id DESC LIMIT 1""",
        [confirmation.requester_client_id, confirmation.requester_subject, confirmation.action],
    )
    return next((errors.Halted(reason=stop.reason) for stop in stops), None)


def refuse_too_many(columns: Mapping[str, object], *, most: int, statuses: Collection[Status] = OPEN) -> None:
    """Raise TooManyOpen when `most` rows with these columns are open, with when the first one ends."""
    same = " AND ".join(f"{column} = %s" for column in columns)
    [[count, first]] = execute(
        f"""SELECT count(*), min(ends_by) - statement_timestamp() FROM (
            SELECT CASE status WHEN 'pending' THEN decide_by ELSE redeem_by END AS ends_by
            FROM confirmations_confirmation WHERE {same} AND status = ANY(%s)
        ) AS still_open WHERE ends_by > statement_timestamp()""",  # noqa: S608 - column names of ours
        [*columns.values(), sorted(statuses)],
    )
    if count >= most:
        raise errors.TooManyOpen(retry_after=max(1, int(first.total_seconds())))


def refusal(
    row: QuerySet[Confirmation], *, if_approved: errors.ConfirmationError
) -> errors.ConfirmationError:
    """The refusal that this row's state means, for a move that it did not allow."""
    confirmation = row.annotate(overdue=IS_OVERDUE).first()
    if confirmation is None:
        return errors.NotFound()
    if confirmation.redeemed_at is not None:
        return errors.AlreadyRedeemed(redeemed_at=confirmation.redeemed_at)
    by_status: dict[Status, errors.ConfirmationError] = {
        Status.PENDING: errors.Pending(retry_after=errors.ASK_AFTER),
        Status.APPROVED: if_approved,
        Status.DENIED: errors.Denied(reason=confirmation.settled_reason),
        Status.CANCELLED: errors.Cancelled(),
        Status.REVOKED: errors.Revoked(reason=confirmation.settled_reason),
        Status.EXPIRED: errors.Expired(),
    }
    return by_status[confirmation.effective_status]

"""Figures over a span of time, for operators.

Each read is bounded, however many rows there are: what is rare is counted up to a bound, and of decisions so
many are looked at, spread evenly over the span, where there are more.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from confirmhub.confirmations import rows

# Decisions that are looked at: all of them up to here, else one in 2, 3, 4 ... of them.
LOOKED_AT = 5_000

# What an operator has to look into is counted up to here.
COUNTED = 1_000

# An approval that came sooner after its question was hardly read.
QUICK = dt.timedelta(seconds=5)

# Where one band of times to decide ends and the next begins.
BANDS = (QUICK, *(dt.timedelta(seconds=seconds) for seconds in (15, 60, 300, 1_800)))

_SPAN = """
SELECT statement_timestamp(),
    date_bin(%(step)s, statement_timestamp() - %(within)s, timestamptz '2001-01-01 00:00+00')
"""

_BOUNDS = """
SELECT (SELECT id FROM confirmations_decision WHERE decided_at >= %(since)s ORDER BY decided_at, id LIMIT 1),
    (SELECT max(id) FROM confirmations_decision)
"""

# One decision of each `every`, at a place within them that no pattern of the rows can follow. OFFSET 0 keeps
# Postgres from looking through the whole tables instead of finding each by its key.
_DECIDED = """
WITH drawn AS MATERIALIZED (
    SELECT seen.*
    FROM generate_series(%(first)s::bigint / %(every)s, %(last)s::bigint / %(every)s) AS part, LATERAL (
        SELECT date_bin(%(step)s, made.decided_at, %(since)s) AS slot, made.approver_id, asked.action,
            asked.requester_client_id, made.verdict = 'approve' AS approved,
            made.decided_at - asked.requested_at AS took
        FROM confirmations_decision AS made
        JOIN confirmations_confirmation AS asked ON asked.id = made.confirmation_id
        WHERE made.id = part * %(every)s + (hashint8(part) & 2147483647) %% %(every)s
            AND made.decided_at >= %(since)s
        OFFSET 0
    ) AS seen
), banded AS (
    SELECT *, width_bucket(took, %(bands)s::interval[]) AS band FROM drawn
)
SELECT grouping(slot, band, action, approver_id, requester_client_id),
    slot, band, action, approver_id, requester_client_id,
    count(*), count(*) FILTER (WHERE approved), count(*) FILTER (WHERE approved AND took < %(quick)s),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY took)
FROM banded
GROUP BY GROUPING SETS ((slot), (band), (action), (approver_id), (requester_client_id), ())
"""

_COUNTS = """
SELECT
    (SELECT count(*) FROM (
        SELECT FROM confirmations_confirmation
        WHERE status = 'pending' AND decide_by > statement_timestamp() LIMIT %(most)s) AS waiting),
    (SELECT requested_at FROM confirmations_confirmation
        WHERE status = 'pending' AND decide_by > statement_timestamp() ORDER BY requested_at LIMIT 1),
    (SELECT count(*) FROM (
        SELECT FROM confirmations_confirmation
        WHERE status = 'redeemed' AND NOT has_outcome
            AND redeemed_at < statement_timestamp() - %(reports_within)s LIMIT %(most)s) AS unknown),
    (SELECT count(*) FROM (
        SELECT FROM confirmations_notice WHERE given_up_at >= %(since)s LIMIT %(most)s) AS given_up)
"""

# By the deadline, and so whether or not `ledger.expire_due` has come to them. The newest of each part are
# found by their index; one of a quorum may have answered all the same.
_UNANSWERED = """
WITH swept AS (
    SELECT id FROM confirmations_confirmation
    WHERE status = 'expired' AND redeem_by IS NULL AND decide_by >= %(since)s
    ORDER BY decide_by DESC LIMIT %(most)s
), unswept AS (
    SELECT id FROM confirmations_confirmation
    WHERE status = 'pending' AND decide_by >= %(since)s AND decide_by <= statement_timestamp()
    ORDER BY decide_by DESC LIMIT %(most)s
), lapsed AS (
    SELECT EXISTS (
            SELECT FROM confirmations_decision AS made WHERE made.confirmation_id = each.id) AS answered,
        EXISTS (
            SELECT FROM confirmations_notice AS told
            WHERE told.confirmation_id = each.id AND told.sent_at IS NOT NULL) AS told
    FROM (SELECT id FROM swept UNION ALL SELECT id FROM unswept LIMIT %(most)s) AS each
)
SELECT count(*) FILTER (WHERE NOT answered), count(*) FILTER (WHERE NOT answered AND NOT told) FROM lapsed
"""

_REFUSED = """
SELECT detail::json ->> 'code', count(*) FROM (
    SELECT detail FROM confirmations_event WHERE kind = 'refused' AND at >= %(since)s
    ORDER BY at DESC LIMIT %(most)s) AS newest
GROUP BY 1 ORDER BY 2 DESC, 1
"""


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when, in slots of one length. The first begins at a round time."""

    since: dt.datetime
    until: dt.datetime
    step: dt.timedelta

    @property
    def slots(self) -> list[dt.datetime]:
        """When each begins."""
        number = -((self.since - self.until) // self.step)
        return [self.since + place * self.step for place in range(number)]


@dataclass(frozen=True, slots=True)
class Tally[Key]:
    """Decisions that have something in common. Estimates, where not all were looked at."""

    key: Key
    decided: int
    approved: int
    quick: int
    """Approvals within `QUICK` of the question."""

    median: dt.timedelta
    """From question to decision."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions of a span. `every`: one in so many was looked at."""

    every: int
    total: Tally[None] | None
    slots: dict[dt.datetime, Tally[dt.datetime]]
    bands: dict[int, Tally[int]]
    actions: list[Tally[str]]
    approvers: list[Tally[int]]
    clients: list[Tally[str]]


@dataclass(frozen=True, slots=True)
class Counts:
    """What waits or went wrong. A number of `COUNTED` means so many or more.

    Waiting and without an outcome is what is so now; the others are of the span.
    """

    waiting: int
    waiting_since: dt.datetime | None
    without_outcome: int
    given_up: int
    unanswered: int
    unanswered_and_untold: int
    """Of the unanswered, those of which no notice reached anybody."""


def span(*, within: dt.timedelta, step: dt.timedelta) -> Span:
    """The last `within`, by Postgres's clock, and what is missing to a round time before."""
    [[until, since]] = rows.execute(_SPAN, {"within": within, "step": step})
    return Span(since, until, step)


def decided(*, during: Span) -> Decided:
    """How and how fast was decided: over time, by action, approver and client."""
    [[first, last]] = rows.execute(_BOUNDS, {"since": during.since})
    every = 1
    found: list[tuple[Any, ...]] = []
    if first is not None:
        every = -(-(last + 1 - first) // LOOKED_AT)  # numbers grow with time
        known = {"since": during.since, "step": during.step, "bands": list(BANDS), "quick": QUICK}
        with transaction.atomic():
            rows.execute("SET LOCAL jit = off", [])  # to compile it takes longer than to run it
            found = rows.execute(_DECIDED, known | {"first": first, "last": last, "every": every})
    return Decided(
        every=every,
        total=next(iter(_tallies(found, 5, every)), None),
        slots={each.key: each for each in _tallies(found, 0, every)},
        bands={each.key: each for each in _tallies(found, 1, every)},
        actions=_tallies(found, 2, every),
        approvers=_tallies(found, 3, every),
        clients=_tallies(found, 4, every),
    )


def count(*, during: Span, reports_within: dt.timedelta) -> Counts:
    """What waits, what nobody answered, what nobody reported on, whom nobody reached.

    An executor may still be at it for as long as `reports_within`; after that its outcome is missing.
    """
    known = {"since": during.since, "most": COUNTED, "reports_within": reports_within}
    [[waiting, since, unknown, given_up]] = rows.execute(_COUNTS, known)
    [[unanswered, untold]] = rows.execute(_UNANSWERED, known)
    return Counts(waiting, since, unknown, given_up, unanswered, untold)


def refused(*, during: Span) -> dict[str, int]:
    """Redemptions that were refused, by the code of the refusal, the most frequent first.

    Of one confirmation the record has the first ten. Together at most `COUNTED`, the newest.
    """
    return dict(rows.execute(_REFUSED, {"since": during.since, "most": COUNTED}))


def _tallies(found: list[tuple[Any, ...]], place: int, every: int) -> list[Tally[Any]]:
    """Those that are grouped by the column at this place of five, or by none; the largest first."""
    grouped = 0b11111 & ~(0b10000 >> place)
    tallies = [
        Tally(
            key=(*keys, None)[place],
            decided=count * every,
            approved=approved * every,
            quick=quick * every,
            median=median,
        )
        for mask, *keys, count, approved, quick, median in found
        if mask == grouped and count
    ]
    return sorted(tallies, key=lambda each: -each.decided)

"""The log as evidence: sealed by checkpoints, checked link by link, exported so that anybody can check it.

Each confirmation's events are a chain of hashes, and so are those of all stops together. A checkpoint holds
the hash of the checkpoint before and how far each finished chain, and that of the stops, had come, so that
nobody can rewrite a log, or leave one out, without rewriting every checkpoint since. Sealing runs beside the
moves: it locks no row that anybody still moves.
"""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from confirmhub.confirmations import rows
from confirmhub.confirmations.evidence import STOPS, Record
from confirmhub.confirmations.models import Checkpoint, Confirmation, Event, Halt, HaltEvent, Seal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seal(*, limit: int) -> int:
    """Seal what has finished since the last checkpoint, at most `limit`, and the stops; say how many logs.

    While another seals this seals nothing.
    """
    [[count]] = rows.execute("SELECT confirmhub_seal(%s)", [limit])
    return int(count)


def retire(*, older_than: timedelta, limit: int) -> int:
    """Delete finished confirmations older than that, at least a day; say how many. Their seals stay.

    Only what is sealed to the last event leaves, and nothing whose outcome nobody knows.
    """
    [[count]] = rows.execute("SELECT confirmhub_retire(%s, %s)", [older_than, limit])
    return int(count)


@contextmanager
def records() -> Iterator[Iterator[Record]]:
    """Everything that can be checked, as one consistent picture: all logs, the checkpoints, the end."""
    with transaction.atomic(durable=True):
        rows.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", [])
        yield _everything()


def _everything() -> Iterator[Record]:
    counts = Counter[str]()
    for record in itertools.chain(_logs(), [_halts()], _checkpoints()):
        counts[record["type"]] += len(record["halts"]) if record["type"] == "halts" else 1
        yield record
    # Without it nobody could tell a whole export from the beginning of one.
    yield {
        "type": "end",
        "confirmations": counts["confirmation"],
        "checkpoints": counts["checkpoint"],
        "halts": counts["halts"],
    }


def _logs() -> Iterator[Record]:
    seals = _Grouped(
        Seal.objects.order_by("confirmation_id", "event_count").values_list(
            "confirmation_id", "event_count", "head", "checkpoint_id"
        )
    )
    events = _Grouped(
        Event.objects.order_by("confirmation_id", "seq").values_list(
            "confirmation_id", "seq", "kind", "actor", "at", "detail", "hash"
        )
    )
    for row in Confirmation.objects.order_by("id").iterator(chunk_size=1_000):
        yield _record(row, events.of(row.id), seals.of(row.id))


def _checkpoints() -> Iterator[Record]:
    for checkpoint in Checkpoint.objects.order_by("seq").iterator(chunk_size=100):
        kept = Exists(Confirmation.objects.filter(id=OuterRef("confirmation_id")))
        sealed = checkpoint.seals.order_by("confirmation_id").annotate(kept=kept)
        yield {
            "type": "checkpoint",
            "seq": checkpoint.seq,
            "micros": _micros(checkpoint.at),
            "hash": bytes(checkpoint.hash).hex(),
            "seals": [
                [str(id_), count, bytes(head).hex(), kept or str(id_) == STOPS]
                for id_, count, head, kept in sealed.values_list(
                    "confirmation_id", "event_count", "head", "kept"
                )
            ],
        }


def _halts() -> Record:
    """The log of stops, and the rows as they stand, which it must explain."""
    events = HaltEvent.objects.order_by("seq").values_list("seq", "kind", "actor", "at", "detail", "hash")
    seals = Seal.objects.filter(confirmation_id=STOPS).order_by("event_count")
    return {
        "type": "halts",
        "events": [_event(event) for event in events],
        "seals": [[one.event_count, bytes(one.head).hex(), one.checkpoint_id] for one in seals],
        "halts": [
            {
                "halt": str(halt.pk),
                "client_id": halt.client_id,
                "subject": halt.subject,
                "action_pattern": halt.action_pattern,
                "action_like": halt.action_like,
                "reason": halt.reason,
                "set_by": rows.name(halt.set_by),
                "set_micros": _micros(halt.set_at),
                "lift_reason": halt.lift_reason,
                "lifted_by": rows.name(halt.lifted_by) if halt.lifted_by else None,
                "lifted_micros": _micros(halt.lifted_at) if halt.lifted_at else None,
            }
            for halt in Halt.objects.order_by("id").select_related("set_by", "lifted_by")
        ],
    }


def _record(row: Confirmation, events: list[tuple[Any, ...]], seals: list[tuple[Any, ...]]) -> Record:
    return {
        "type": "confirmation",
        "id": str(row.id),
        "status": row.status,
        "audience": row.audience,
        "action": row.action,
        "arguments": row.arguments,
        "tool_digest": bytes(row.tool_digest).hex(),
        "digest": bytes(row.digest).hex(),
        "view_digest": bytes(row.view_digest).hex(),
        "event_count": row.event_count,
        "event_head": bytes(row.event_head).hex(),
        "events": [_event(event) for event in events],
        "seals": [[count, bytes(head).hex(), checkpoint] for count, head, checkpoint in seals],
    }


def _event(event: tuple[Any, ...]) -> Record:
    seq, kind, actor, at, detail, hash_ = event
    return {
        "seq": seq,
        "kind": kind,
        "actor": actor,
        "micros": _micros(at),
        "detail": detail,
        "hash": bytes(hash_).hex(),
    }


class _Grouped:
    """Rows that begin with a confirmation's id, in its order, handed out by id without holding them all."""

    def __init__(self, ordered: QuerySet[Any, tuple[Any, ...]]) -> None:
        self.rows = ordered.iterator(chunk_size=1_000)
        self.next = next(self.rows, None)

    def of(self, confirmation_id: uuid.UUID) -> list[tuple[Any, ...]]:
        found = []
        while self.next is not None and self.next[0] <= confirmation_id:
            if self.next[0] == confirmation_id:
                found.append(self.next[1:])
            self.next = next(self.rows, None)
        return found


def _micros(at: datetime) -> int:
    """Microseconds since 1970, exactly: a float of seconds has not digits enough."""
    return (at - _EPOCH) // timedelta(microseconds=1)

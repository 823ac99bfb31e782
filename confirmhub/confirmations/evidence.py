"""Checking the log without trusting who kept it: records in, the first broken link or a count out.

Pure: it needs no database, so that an export can be checked anywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confirmhub.confirmations.actions import ACTION_DOMAIN, framed
from confirmhub.confirmations.states import Status

type Record = dict[str, Any]

# The log of all stops stands under this in a checkpoint, where a confirmation's stands under its id.
STOPS = "00000000-0000-0000-0000-000000000000"

# What a log's last word but one of these says about the status; the rest say nothing new.
_STATUS_AFTER = {
    "requested": Status.PENDING,
    "allow": Status.APPROVED,
    "deny": Status.DENIED,
    "denied": Status.DENIED,  # by an operator
    "cancelled": Status.CANCELLED,
    "revoked": Status.REVOKED,
    "expired": Status.EXPIRED,
    "redeemed": Status.REDEEMED,
}
_NOTHING_NEW = {"succeeded", "failed", "refused", "reminded", "escalated", "unsent"}


class BrokenLog(Exception):
    """The log is not what was written. The text names the first link that does not hold."""


@dataclass(slots=True)
class Checked:
    """What held."""

    confirmations: int = 0
    unsealed: int = 0
    """Confirmations that are open, or have an event that no checkpoint vouches for yet."""

    events: int = 0
    checkpoints: int = 0
    halts: int = 0
    unsealed_halts: int = 0
    """Entries in the log of stops that no checkpoint vouches for yet."""

    gone: int = 0
    """Sealed logs that are no longer there: past the time that they are kept."""


def event_hash(*, before: bytes, log: str, event: Record) -> bytes:
    """The hash of an event, as the database's `confirmhub_event_hash` makes it.

    `log` is the id of the confirmation that it is of, or STOPS.
    """
    parts = (event["seq"], event["kind"], event["actor"], event["micros"], event["detail"])
    return _hash(before.hex(), log, *map(str, parts))


def checkpoint_hash(*, before: bytes, seq: int, micros: int, seals: Iterable[tuple[str, int, str]]) -> bytes:
    """The hash of a checkpoint, as the database's `confirmhub_seal` makes it.

    It is over its seals: confirmation, number of events, hash of the last one.
    """
    return _hash(
        before.hex(), str(seq), str(micros), *(f"{id_} {count} {head}" for id_, count, head in seals)
    )


def check(records: Iterable[Record]) -> Checked:
    """Check records as `audit.records` and an export give them: all logs, the checkpoints, then the end.

    Raises:
        BrokenLog: Something was changed, left out or added, or is no record at all.
    """
    checked = Checked()
    # Each seal stands with its log and with its checkpoint; what stands once alone is left over here.
    balance = 0
    before = b""
    ended = False
    for number, record in enumerate(records, start=1):
        if ended:
            raise BrokenLog(f"record {number} stands after the end")
        try:
            if record["type"] == "confirmation":
                balance ^= _check_confirmation(record, checked)
            elif record["type"] == "end":
                _check_end(record, checked)
                ended = True
            elif record["type"] == "halts":
                balance ^= _check_halts(record, checked)
            else:
                before = _check_checkpoint(record, checked, before=before)
                for id_, count, head, kept in record["seals"]:
                    here = kept or id_ == STOPS  # which never leaves
                    balance ^= _token(record["seq"], id_, count, head) if here else 0
                    checked.gone += not here
        except (KeyError, TypeError, ValueError, IndexError) as exc:
            raise BrokenLog(f"record {number} is not of the form of an export") from exc
    if not ended:
        raise BrokenLog("it was cut off: its last record, which counts the others, is missing")
    if balance:
        raise BrokenLog("the checkpoints do not seal the logs that are here: one was left out or put in")
    return checked


def _check_end(record: Record, checked: Checked) -> None:
    says, found = (
        f"{confirmations} confirmations, {checkpoints} checkpoints and {halts} halts"
        for confirmations, checkpoints, halts in (
            (record["confirmations"], record["checkpoints"], record["halts"]),
            (checked.confirmations, checked.checkpoints, checked.halts),
        )
    )
    if says != found:
        raise BrokenLog(f"it was cut off: it should hold {says}, and holds {found}")


def _check_checkpoint(record: Record, checked: Checked, *, before: bytes) -> bytes:
    seals = [(id_, count, head) for id_, count, head, _ in record["seals"]]
    found = checkpoint_hash(before=before, seq=record["seq"], micros=record["micros"], seals=seals)
    if record["seq"] != checked.checkpoints + 1 or found.hex() != record["hash"]:
        raise BrokenLog(f"checkpoint {checked.checkpoints + 1} does not follow from what it seals")
    checked.checkpoints += 1
    return found


def _check_confirmation(record: Record, checked: Checked) -> int:
    where = f"confirmation {record['id']}"
    hashes = _chained(record["events"], log=record["id"], where=where)
    status = None
    for event in record["events"]:
        status = _status_after(event, before=status)
    if len(hashes) - 1 != record["event_count"] or hashes[-1].hex() != record["event_head"]:
        raise BrokenLog(f"{where}: its log does not end where the record says")
    if status != record["status"]:
        raise BrokenLog(f"{where}: its log says {status}, the record says {record['status']}")
    asked = json.loads(record["events"][0]["detail"])
    parts = (record["audience"].encode(), record["action"].encode(), bytes.fromhex(record["tool_digest"]))
    digest = hashlib.sha256(framed(ACTION_DOMAIN, *parts, record["arguments"].encode())).hexdigest()
    if {digest, record["digest"]} != {asked.get("digest")} or asked.get("view_digest") != record[
        "view_digest"
    ]:
        raise BrokenLog(f"{where}: it is not for the action that was asked for")
    checked.confirmations += 1
    checked.events += len(record["events"])
    checked.unsealed += max((count for count, _, _ in record["seals"]), default=0) < record["event_count"]
    return _sealed(record["seals"], hashes, log=record["id"], where=where)


def _check_halts(record: Record, checked: Checked) -> int:
    where = "the log of stops"
    hashes = _chained(record["events"], log=STOPS, where=where)
    balance = _sealed(record["seals"], hashes, log=STOPS, where=where)
    logged: dict[str, Record] = {}
    for event in record["events"]:
        said = json.loads(event["detail"])
        before = logged.get(said["halt"])
        if event["kind"] == "stopped" and before is None:
            not_lifted = {"lift_reason": "", "lifted_by": None, "lifted_micros": None}
            logged[said["halt"]] = (
                said | not_lifted | {"set_by": event["actor"], "set_micros": event["micros"]}
            )
        elif event["kind"] == "lifted" and before is not None and before["lifted_by"] is None:
            lifted = {"lifted_by": event["actor"], "lifted_micros": event["micros"]}
            logged[said["halt"]] = before | lifted | {"lift_reason": said["reason"]}
        else:
            raise BrokenLog(f"{where}: event {event['seq']} cannot follow those before")
    found = {halt["halt"]: halt for halt in record["halts"]}
    for halt in sorted(logged.keys() | found.keys(), key=int):
        if logged.get(halt) != found.get(halt):
            raise BrokenLog(f"stop {halt}: the row is not what the log of stops says")
    checked.halts += len(found)
    checked.unsealed_halts += len(record["events"]) - max(
        (count for count, _, _ in record["seals"]), default=0
    )
    return balance


def _chained(events: list[Record], *, log: str, where: str) -> list[bytes]:
    """The hashes of a log's events, beginning with the empty one before the first."""
    hashes = [b""]
    for place, event in enumerate(events, start=1):
        found = event_hash(before=hashes[-1], log=log, event=event)
        if event["seq"] != place or found.hex() != event["hash"]:
            raise BrokenLog(f"{where}: event {place} does not follow from the one before")
        hashes.append(found)
    return hashes


def _sealed(seals: list[list[Any]], hashes: list[bytes], *, log: str, where: str) -> int:
    """Hold a log to the seals of its checkpoints; give what they weigh in the balance."""
    balance = 0
    for count, head, checkpoint in seals:
        if count >= len(hashes) or hashes[count].hex() != head:
            raise BrokenLog(f"{where}: its first {count} events are not those that a checkpoint sealed")
        balance ^= _token(checkpoint, log, count, head)
    return balance


def _status_after(event: Record, *, before: Status | None) -> Status | None:
    if event["kind"] == "approve":  # the last of a quorum settles it, and says so
        return Status(json.loads(event["detail"])["status"])
    return before if event["kind"] in _NOTHING_NEW else _STATUS_AFTER.get(event["kind"])


def _token(checkpoint: int, id_: str, count: int, head: str) -> int:
    return int.from_bytes(_hash(str(checkpoint), id_, str(count), head))


def _hash(*parts: str) -> bytes:
    text = ",".join(f"{len(part.encode())}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).digest()

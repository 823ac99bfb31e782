"""The objects of the protocol: read strictly, and written from a confirmation.

AAP version 1, its OpenAPI document; `server`, consumption and outcome as in the published clients of 0.3.3.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confirmhub import display
from confirmhub.aap.refusals import Malformed
from confirmhub.confirmations import strict
from confirmhub.confirmations.actions import MAX_BODY_DEPTH, Json
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.screen import MAX_SUMMARY
from confirmhub.confirmations.states import Result, Status

MAX_SERVER = 200  # characters
MAX_WAIT = dt.timedelta(seconds=30)  # of the protocol: longer waits are answered after this
LEAST_TIMEOUT = dt.timedelta(seconds=10)

_DURATION = re.compile(r"([1-9][0-9]{0,8})([smh])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours"}


@dataclass(frozen=True, slots=True)
class Submission:
    """A call that somebody wants approved."""

    tool: str
    arguments: dict[str, Json]
    server: str
    timeout: dt.timedelta
    reasoning: str
    """The agent's own words: untrusted."""

    rest: str
    """All other fields, as ASCII JSON with sorted keys: the same fields, the same text."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a call."""

    result: Result
    note: str


def submission(raw: bytes) -> Submission:
    """Read a CreateApprovalRequest.

    Raises:
        Malformed: It is not one, or ambiguous.
    """
    body = _object(raw, required={"tool", "arguments", "timeout"}, optional=_TOLD)
    timeout = duration(_text(body, "timeout"), of="timeout")
    if timeout < LEAST_TIMEOUT:
        raise Malformed("Nobody reads a question within less than 10 seconds.", param="timeout")
    server = _text(body, "server") if "server" in body else ""
    if len(server) > MAX_SERVER:
        raise Malformed(f"A server's name has at most {MAX_SERVER} characters.", param="server")
    reasoning = _text(body, "agent_reasoning", empty=True) if "agent_reasoning" in body else ""
    if "context" in body:
        _mapping(body, "context")
    rest = {name: value for name, value in body.items() if name not in ("tool", "arguments")}
    return Submission(
        tool=_text(body, "tool"),
        arguments=_mapping(body, "arguments"),
        server=server,
        timeout=timeout,
        reasoning=reasoning,
        rest=json.dumps(rest, sort_keys=True, separators=(",", ":")),
    )


def report(raw: bytes) -> Report:
    """Read an outcome.

    Raises:
        Malformed: It is not one.
    """
    body = _object(raw, required={"status"}, optional={"note"})
    status = _text(body, "status")
    if status not in list(Result):
        raise Malformed("The status is succeeded or failed.", param="status")
    return Report(Result(status), _text(body, "note") if "note" in body else "")


def duration(text: str, *, of: str) -> dt.timedelta:
    """Read a duration, such as 30s, 10m or 24h. `of` names the field.

    Raises:
        Malformed: It is not one.
    """
    if (match := _DURATION.fullmatch(text)) is None:
        raise Malformed("A duration is a whole number and s, m or h, such as 30s.", param=of)
    return dt.timedelta(**{_UNITS[match[2]]: int(match[1])})


def summary(reasoning: str) -> str:
    """The agent's reasoning, cut visibly to what the page shows of a summary."""
    if len(reasoning) <= MAX_SUMMARY:
        return reasoning
    kept = MAX_SUMMARY - 60
    return f"{reasoning[:kept]} [confirmhub: {len(reasoning) - kept} more characters left out]"


def resource(confirmation: Confirmation, *, rest: str) -> dict[str, object]:
    """An ApprovalRequest: what was submitted, exactly, and where it stands."""
    status = standing(confirmation)
    written: dict[str, object] = {
        **json.loads(rest),
        "id": str(confirmation.id),
        "tool": confirmation.action,
        "arguments": json.loads(confirmation.arguments),
        "status": status,
        "created_at": _stamp(confirmation.requested_at),
        "deadline_at": _stamp(confirmation.decide_by),
    }
    if status != "pending":
        written["decision"] = _decision(confirmation, status)
    if confirmation.redeemed_at is not None:
        written["consumption"] = _consumption(confirmation, confirmation.redeemed_at)
    return written


def standing(confirmation: Confirmation) -> str:
    """The protocol's word for where it stands.

    It has none for an approval that was revoked. An adapter that reads that before it acts has to find that
    it may not: `denied`, though the protocol would have an approval stay what it is.
    """
    match confirmation.effective_status:
        case Status.PENDING | Status.DENIED | Status.CANCELLED as same:
            return str(same)
        case Status.REVOKED:
            return "denied"
        case Status.EXPIRED if confirmation.redeem_by is None:
            return "expired"
    return "approved"  # and perhaps spent, or past its expires_at


def _decision(confirmation: Confirmation, status: str) -> dict[str, object]:
    # Of what nobody decided it is the deadline, whenever the sweeper came by: an answer once given stays.
    decided_at = min(confirmation.settled_at or confirmation.decide_by, confirmation.decide_by)
    decision: dict[str, object] = {"status": status, "decided_at": _stamp(decided_at)}
    if confirmation.settled_reason:  # a person's words, which the client hands to the model
        decision["note"] = display.text(confirmation.settled_reason)
    if status == "approved":
        decision["expires_at"] = _stamp(confirmation.redeem_by)
    return decision


def _consumption(confirmation: Confirmation, at: dt.datetime) -> dict[str, object]:
    consumption: dict[str, object] = {"consumed_at": _stamp(at)}
    if outcome := getattr(confirmation, "outcome", None):
        told: dict[str, object] = {"status": outcome.result, "reported_at": _stamp(outcome.reported_at)}
        consumption["outcome"] = told | ({"note": outcome.detail} if outcome.detail else {})
    return consumption


def _stamp(at: dt.datetime | None) -> str:
    assert at is not None
    return at.astimezone(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


_TOLD = {"server", "agent_reasoning", "context"}


def _object(raw: bytes, *, required: set[str], optional: set[str]) -> dict[str, Any]:
    try:
        body = strict.parse(raw=raw, max_depth=MAX_BODY_DEPTH)
    except strict.NotStrict as exc:
        raise Malformed(f"The body {exc}.") from exc
    if not isinstance(body, dict):
        raise Malformed("The body must be a JSON object.")
    if unknown := sorted(body.keys() - required - optional):
        known = ", ".join(sorted(required | optional))
        raise Malformed(f"A field is unknown. There are: {known}.", param=display.short(unknown[0], 100))
    if missing := sorted(required - body.keys()):
        raise Malformed("A field is missing.", param=missing[0])
    return body


def _text(body: Mapping[str, Any], name: str, *, empty: bool = False) -> str:
    value = body[name]
    if not isinstance(value, str) or not (value or empty):
        raise Malformed("This must be a string, and not empty.", param=name)
    return value


def _mapping(body: Mapping[str, Any], name: str) -> dict[str, Json]:
    value = body[name]
    if not isinstance(value, dict):
        raise Malformed("This must be a JSON object.", param=name)
    return value

"""What is said to the hub, and in which order, without any input or output: `hub` sends it, both ways.

A step is a generator: it yields the call to make, is sent the body of the answer, and returns a value. A
refusal, and a hub that cannot be reached, are thrown into it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from confirmhub_client.errors import Expired, Refused, Replayed
from confirmhub_client.values import Arguments, Confirmation, Receipt

PATIENCE = 50  # seconds that one wait is held
LONGEST_DETAIL = 2_000  # characters of an outcome's detail

type Steps[T] = Generator[Call, dict[str, Any], T]


@dataclass(frozen=True, slots=True)
class Call:
    """One request. Every call may be repeated: its keys make it one."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    timeout: float = 20.0  # seconds


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask."""

    action: str
    arguments: Arguments
    summary: str = ""
    on_behalf_of: str | None = None
    question: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    fingerprint: str = ""


def ask(question: Question, *, idempotency_key: str | None) -> Steps[Confirmation]:
    body: dict[str, Any] = {"action": question.action, "arguments": dict(question.arguments)}
    for name in ("summary", "on_behalf_of", "question", "fingerprint"):
        if value := getattr(question, name):
            body[name] = value
    if question.facts:
        body["facts"] = [{"label": label, "value": value} for label, value in question.facts]
    key = idempotency_key or new_key()
    return Confirmation.of((yield Call("POST", "confirmations", body, {"Idempotency-Key": key})))


def read(id_: str) -> Steps[Confirmation]:
    return Confirmation.of((yield Call("GET", f"confirmations/{id_}")))


def wait(id_: str, *, within: float | None) -> Steps[Confirmation]:
    """Until it was decided or settled in another way, or for `within` seconds."""
    until = None if within is None else time.monotonic() + within
    while True:
        left = PATIENCE if until is None else min(PATIENCE, max(0, int(until - time.monotonic())))
        path = f"confirmations/{id_}/wait?timeout={left}"
        found = Confirmation.of((yield Call("GET", path, timeout=left + 20.0)))
        if found.status != "pending" or left == 0:
            return found


def redeem(id_: str, *, action: str, arguments: Arguments, redemption_key: str | None) -> Steps[Receipt]:
    key = redemption_key or new_key()
    body = {"action": action, "arguments": dict(arguments), "redemption_key": key}
    return Receipt.of((yield Call("POST", f"confirmations/{id_}/redeem", body)))


def report(receipt: Receipt, *, result: str, detail: str) -> Steps[None]:
    body = {"redemption_key": receipt.redemption_key, "result": result, "detail": detail[:LONGEST_DETAIL]}
    yield Call("POST", f"confirmations/{receipt.confirmation_id}/outcome", body)


def cancel(id_: str, *, reason: str) -> Steps[Confirmation]:
    return Confirmation.of((yield Call("POST", f"confirmations/{id_}/cancel", {"reason": reason})))


def signed(id_: str) -> Steps[str]:
    answer = yield Call("GET", f"confirmations/{id_}/receipt")
    return str(answer["receipt"])


def confirm(
    question: Question, *, idempotency_key: str | None, redemption_key: str | None, within: float | None
) -> Steps[Receipt]:
    """Ask, wait, and spend the yes."""
    asked = yield from ask(question, idempotency_key=idempotency_key)
    found = yield from wait(asked.id, within=within)
    if found.status == "pending":
        yield from _withdraw(asked.id)
        raise Expired({"title": "Nobody decided within the time that the caller had."})
    receipt = yield from redeem(
        asked.id, action=question.action, arguments=question.arguments, redemption_key=redemption_key
    )
    # Under a key of this call, a replay is an answer that was lost on its way: nothing was done yet.
    if receipt.replayed and redemption_key is not None:
        raise Replayed(receipt)
    return receipt


def _withdraw(id_: str) -> Steps[None]:
    """Nobody is left to use a yes. If one came in this moment, it runs out."""
    try:
        yield from cancel(id_, reason="The caller stopped waiting.")
    except Refused:
        return


def new_key() -> str:
    return secrets.token_urlsafe(24)

"""What the page shows of a confirmation, as one digest; and what cannot be shown whole, refused.

Two different screens never share a view digest: it is stored with the request, posted with the decision,
kept with the decision, and its first 8 digits stand on the page and in the host's text, to compare.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from confirmhub import display
from confirmhub.confirmations.actions import Action, Json, Observation, framed
from confirmhub.confirmations.errors import InvalidAction
from confirmhub.confirmations.policies import Policy

VIEW_DOMAIN = b"confirmhub/view/v1"
MAX_SUMMARY = 1_000  # characters
MAX_SHOWN = 4_000  # characters of one value as the page shows it
MAX_SEEN = 32_000  # the same of all facts together, as many as arguments have room for
MAX_ROWS = 1_000  # one for each argument at any depth, each fact, and each further line of a text


def view_digest(
    *, action: Action, observation: Observation, summary: str, question: str, policy: Policy
) -> bytes:
    """The SHA-256, 32 bytes, of all that the page shows."""
    rule = [
        policy.name,
        policy.mode,
        policy.approvals_needed,
        policy.approver_group_id,
        policy.self_approval,
        policy.redeem_within.total_seconds(),
        policy.assurance,
        policy.escalation_group_id,
    ]
    words = json.dumps([observation.facts, observation.fingerprint, summary, question, rule, display.VERSION])
    return hashlib.sha256(framed(VIEW_DOMAIN, action.digest, words.encode("ascii"))).digest()


def check_value(view_digest: bytes | memoryview) -> str:
    """The first 8 hex digits in two groups: what people compare, written alike wherever it stands."""
    head = bytes(view_digest).hex()[:8]
    return f"{head[:4]} {head[4:]}"


def refuse_what_cannot_be_shown(*, action: Action, summary: str, observation: Observation | None) -> None:
    """Refuse at creation what the page would have to cut: what cannot be shown whole cannot be approved.

    Raises:
        InvalidAction: The summary has more than 1,000 characters, a text takes more than 4,000 as the page
            shows it or the facts together more than 32,000, or there are more than 1,000 rows: nobody
            reads them, and the page would take seconds.
    """
    if len(summary) > MAX_SUMMARY:
        raise InvalidAction(f"The summary has {len(summary)} characters; at most {MAX_SUMMARY} are shown.")
    arguments = dict(action.arguments)
    facts = [text for fact in observation.facts for text in fact] if observation else []
    texts = [*facts, summary, *_texts(arguments)]
    rows = _count(arguments) - 1 + len(facts) // 2 + sum(text.count("\n") for text in texts)
    if rows > MAX_ROWS:
        raise InvalidAction(
            f"It takes {rows} rows on the page, one for each value and each line; at most {MAX_ROWS} can be "
            "read. Ask for less at once."
        )
    shown = [len(display.text(text)) for text in texts]
    if max(shown) > MAX_SHOWN:
        raise InvalidAction(
            f"A value takes more than {MAX_SHOWN} characters on the page; it could not be shown whole."
        )
    if sum(shown[: len(facts)]) > MAX_SEEN:
        raise InvalidAction(f"The facts take more than {MAX_SEEN} characters on the page together.")


def _count(value: Json) -> int:
    """How many values there are, itself included."""
    match value:
        case dict():
            return 1 + sum(map(_count, value.values()))
        case list():
            return 1 + sum(map(_count, value))
        case _:
            return 1


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)

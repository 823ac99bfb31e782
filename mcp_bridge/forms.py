"""The question as a form of the host's, where the policy takes the host's word for the person's.

A form is plain text, so it shows only what plain text can show whole: what is long, and what the page would
mark as misleading, goes to the page. There is no link in it, since people should not learn to follow those.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from confirmhub import display
from confirmhub.confirmations.actions import Json
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Assurance, Verdict
from mcp_bridge import answers, rounds

MOST = 2_000  # characters of a question; hosts are known to cut long ones, or to let them scroll away
LINES = 40

DECISION = "decision"
ALLOW, DENY = "allow", "deny"
SCHEMA: dict[str, Any] = {
    "type": "object",
    # Two words to choose from and none chosen, rather than a box that a host may have ticked.
    "properties": {DECISION: {"type": "string", "title": "Your answer", "enum": [DENY, ALLOW]}},
    "required": [DECISION],
}

type Change = tuple[str, str, str]
"""The label of a fact, what it was, what it is."""


def may_answer(confirmation: Confirmation, ctx: Context[Any, Any]) -> bool:
    """Whether the policy takes a host's word here, and the host can ask."""
    return confirmation.assurance == Assurance.HOST and rounds.can_show_forms(ctx)


def ask(confirmation: Confirmation, *, changes: Iterable[Change], number: int) -> InputRequiredResult | None:
    """Have the host ask the person; None: a form cannot show it whole and clearly."""
    message = question(confirmation, changes=changes)
    if message is None:
        return None
    shown = bytes(confirmation.view_digest).hex()
    params = ElicitRequestFormParams(message=message, requested_schema=SCHEMA)
    return InputRequiredResult(
        input_requests={rounds.FORM: ElicitRequest(params=params)},
        request_state=str(rounds.State(confirmation.id, number, shown)),
    )


def verdict(content: dict[str, Any] | None) -> Verdict | None:
    """What the person chose; None: nothing that was to choose from."""
    chosen = (content or {}).get(DECISION)
    return {ALLOW: Verdict.APPROVE, DENY: Verdict.DENY}.get(chosen) if isinstance(chosen, str) else None


def question(confirmation: Confirmation, *, changes: Iterable[Change] = ()) -> str | None:
    """All that the person decides on, each value on a line of its own; None where it does not fit."""
    told = list(changes)
    values = [text for change in told for text in change]
    values += [text for fact in confirmation.fact_items for text in fact]
    values += [text for item in confirmation.argument_items for text in _texts(item)]
    if any(flag.level == "warn" for value in values for flag in display.show(value).flags):
        return None
    lines = [display.text(confirmation.question), f"Action: {display.text(confirmation.action)}"]
    lines += _section("Arguments", ((key, _written(item)) for key, item in confirmation.argument_items))
    lines += _section(
        "Changed since it was allowed before",
        ((label, f"{display.text(now)} (was {display.text(was)})") for label, was, now in told),
    )
    lines += _section(
        "As it is now", ((label, display.text(fact)) for label, fact in confirmation.fact_items)
    )
    lines.append(f"Check value {answers.check(confirmation)}. To allow means exactly this, once.")
    message = "\n".join(lines)
    return message if len(message) <= MOST and len(lines) <= LINES else None


def _section(title: str, items: Iterable[tuple[str, str]]) -> list[str]:
    found = [f"  {display.text(label)}: {value}" for label, value in items]
    return [f"{title}:", *found] if found else []


def _written(item: Json) -> str:
    """An argument on one line; a text in quotes, so that "5" is not 5."""
    if isinstance(item, str):
        return f'"{display.text(item)}"'
    return display.text(json.dumps(item, ensure_ascii=False))


def _texts(item: Json | tuple[str, Json]) -> Iterator[str]:
    match item:
        case str():
            yield item
        case list() | tuple():
            for inner in item:
                yield from _texts(inner)
        case dict():
            for pair in item.items():
                yield from _texts(pair)

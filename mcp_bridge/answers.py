"""What a tool that waits for a person answers: in words for a model, and as data for a program."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Literal

from django.conf import settings
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from confirmhub import display
from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.queries import Standing
from confirmhub.confirmations.screen import check_value
from confirmhub.confirmations.states import Mode
from mcp_bridge.threads import in_thread

FACT = 300  # characters of a fact; the page shows it whole
CHECK = "The check value: eight hex digits that the page shows too, to compare."
SLOW = " It is normal that a group takes longer than one call: end your turn, and come back to it later."


class Answer(BaseModel):
    """How far a guarded call has come."""

    status: Literal["done", "waiting_for_person"]
    message: str = Field(description="What happened, or what to do next.")
    confirmation_id: uuid.UUID
    page: str = Field(description="Where the person reads and decides. It opens for them alone.")
    check: str = Field(description=CHECK)
    replayed: bool = Field(False, description="True: it was done before, and nothing was done now.")


def page(confirmation_id: uuid.UUID) -> str:
    """The address where a person decides. It names the confirmation and opens nothing."""
    return f"{settings.PUBLIC_URL}/confirm/{confirmation_id}"


def check(confirmation: Confirmation | Standing) -> str:
    """The check value, for people to compare."""
    return check_value(confirmation.view_digest)


async def approvals(confirmations: Collection[Confirmation]) -> Mapping[uuid.UUID, int]:
    """How many people have approved each of these so far, as far as it takes several."""
    of_groups = [row for row in confirmations if row.mode == Mode.APPROVE]
    none = dict.fromkeys((row.id for row in confirmations), 0)
    return none | (await in_thread(queries.count_approvals, confirmations=of_groups) if of_groups else {})


def who_decides(confirmation: Confirmation, *, where: str, approved: int) -> str:
    """Who decides, in words that end before the address of the page. `where` is "here" or "on"."""
    if confirmation.mode == Mode.APPROVE:
        needed = confirmation.approvals_needed
        return f"People of a group decide ({approved} of {needed} have approved so far) {where}"
    return f"The person you act for decides {where}"


def waiting(
    confirmation: Confirmation, *, again: str, approved: int, changed: Collection[str] = ()
) -> CallToolResult:
    """The answer while it is undecided.

    `again` says what to call then, `approved` how many have so far, `changed` the labels of the facts that
    are others than when it was allowed before.
    """
    facts = "".join(
        f"\n  {display.text(label)}: {display.short(value, FACT)}" for label, value in confirmation.fact_items
    )
    others = ", ".join(map(display.text, changed))
    message = (
        f"Nothing has been done yet. {who_decides(confirmation, where='here', approved=approved)}:\n"
        f"  {page(confirmation.id)}\n"
        f"It shows the check value {check(confirmation)}. Asked was: "
        f"{display.text(confirmation.question)}{facts}\n"
        f"{f'Changed since it was allowed before: {others}.\n' if changed else ''}"
        f"The confirmation_id is {confirmation.id}. It can be decided until "
        f"{confirmation.decide_by:%Y-%m-%dT%H:%M:%SZ}."
        f"{SLOW if confirmation.mode == Mode.APPROVE else ''}\nWhen they have decided, {again}"
    )
    return _answer(confirmation, status="waiting_for_person", message=message, replayed=False)


def done(confirmation: Standing, *, message: str, replayed: bool) -> CallToolResult:
    """The answer when the effect has happened, now or before."""
    return _answer(confirmation, status="done", message=message, replayed=replayed)


def _answer(
    confirmation: Confirmation | Standing,
    *,
    status: Literal["done", "waiting_for_person"],
    message: str,
    replayed: bool,
) -> CallToolResult:
    answer = {  # an `Answer`, which the SDK checks
        "status": status,
        "message": message,
        "confirmation_id": str(confirmation.id),
        "page": page(confirmation.id),
        "check": check(confirmation),
        "replayed": replayed,
    }
    content = TextContent(type="text", text=message)
    return CallToolResult(content=[content], structured_content=answer)

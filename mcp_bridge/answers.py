"""What a tool that waits for a person answers: in words for a model, and as data for a program."""

from __future__ import annotations

import uuid
from typing import Literal

from django.conf import settings
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from confirmhub import display
from confirmhub.confirmations.models import Confirmation

FACT = 300  # characters of a fact; the page shows it whole


class Answer(BaseModel):
    """How far a guarded call has come."""

    status: Literal["done", "waiting_for_person"]
    message: str = Field(description="What happened, or what to do next.")
    confirmation_id: uuid.UUID
    page: str = Field(description="Where the person reads and decides. It opens for them alone.")
    check: str = Field(description="Eight characters that the page shows too, to compare.")
    replayed: bool = Field(False, description="True: it was done before, and nothing was done now.")


def page(confirmation_id: uuid.UUID) -> str:
    """The address where a person decides. It names the confirmation and opens nothing."""
    return f"{settings.PUBLIC_URL}/confirm/{confirmation_id}"


def check(confirmation: Confirmation) -> str:
    """The first eight hex digits of the view digest, for people to compare."""
    return bytes(confirmation.view_digest).hex()[:8]


def readable_check(confirmation: Confirmation) -> str:
    """The same as the page writes it, in two groups."""
    return f"{check(confirmation)[:4]} {check(confirmation)[4:]}"


def waiting(confirmation: Confirmation, *, again: str) -> CallToolResult:
    """The answer while nobody has decided. `again` says what to call then."""
    facts = "".join(
        f"\n  {label}: {display.short(value, FACT)}"
        for label, value in confirmation.fact_items  # the labels are ours
    )
    message = (
        f"Nothing has been done yet. The person you act for decides here:\n  {page(confirmation.id)}\n"
        f"It shows the check value {readable_check(confirmation)}. Asked was: "
        f"{confirmation.question}{facts}\n"
        f"The confirmation_id is {confirmation.id}. It can be decided until "
        f"{confirmation.decide_by:%Y-%m-%dT%H:%M:%SZ}.\nWhen they have decided, {again}"
    )
    return _answer(confirmation, status="waiting_for_person", message=message, replayed=False)


def done(confirmation: Confirmation, *, message: str, replayed: bool) -> CallToolResult:
    """The answer when the effect has happened, now or before."""
    return _answer(confirmation, status="done", message=message, replayed=replayed)


def _answer(
    confirmation: Confirmation, *, status: Literal["done", "waiting_for_person"], message: str, replayed: bool
) -> CallToolResult:
    answer = Answer(
        status=status,
        message=message,
        confirmation_id=confirmation.id,
        page=page(confirmation.id),
        check=check(confirmation),
        replayed=replayed,
    )
    content = TextContent(type="text", text=message)
    return CallToolResult(content=[content], structured_content=answer.model_dump(mode="json"))

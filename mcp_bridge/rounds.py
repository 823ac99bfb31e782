"""The rounds of a question: what the host can do, what it carries between them, how long each is held."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from dataclasses import dataclass
from typing import Any, Self

from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestURLParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from confirmhub.confirmations import waiting
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Mode, Status
from mcp_bridge import answers

# Hosts are known to end a tool call after 60 s, and proxies an idle response; a third of that leaves
# room for slow networks. The SDKs' clients give up with an error after 10 rounds.
HOLD = dt.timedelta(seconds=20)
LAST = 8

_KEY = "page"


@dataclass(frozen=True, slots=True)
class State:
    """What the host carries, sealed by the SDK. A name and a count; the ledger has all the rest."""

    confirmation_id: uuid.UUID
    number: int

    @classmethod
    def of(cls, plaintext: str) -> Self:
        confirmation_id, number = json.loads(plaintext)
        return cls(uuid.UUID(confirmation_id), int(number))

    def __str__(self) -> str:
        return json.dumps([str(self.confirmation_id), self.number])


def is_modern(ctx: Context[Any, Any]) -> bool:
    """Whether this request's protocol has rounds. A state proves nothing: old requests may carry one too."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_open_pages(ctx: Context[Any, Any]) -> bool:
    """Whether the host declared URL elicitation. `elicitation: {}` means forms alone."""
    declared = ctx.client_capabilities.elicitation if ctx.client_capabilities else None
    return is_modern(ctx) and declared is not None and declared.url is not None


def ask(confirmation: Confirmation) -> InputRequiredResult:
    """Have the host offer the page to the person. The link opens nothing: the page asks for a sign-in."""
    by_a_group = confirmation.mode == Mode.APPROVE
    message = (
        f"{confirmation.question} {'People of a group decide' if by_a_group else 'Read and decide'} on the "
        f"page, which shows exactly what will be done and the check value {answers.check(confirmation)}."
    )
    question = ElicitRequestURLParams(message=message, url=answers.page(confirmation.id))
    return InputRequiredResult(
        input_requests={_KEY: ElicitRequest(params=question)},
        request_state=str(State(confirmation.id, 1)),
    )


def once_more(confirmation: Confirmation, *, number: int) -> InputRequiredResult:
    """Have the host come back. Without a request in it, or the person would be asked again each time."""
    return InputRequiredResult(request_state=str(State(confirmation.id, number)))


def was_declined(ctx: Context[Any, Any]) -> bool:
    """Whether the person refused in the host. An `accept` says only that they opened the page."""
    answer = (ctx.input_responses or {}).get(_KEY)
    return isinstance(answer, ElicitResult) and answer.action != "accept"


async def hold(confirmation_id: uuid.UUID, *, within: dt.timedelta | None = None) -> Status:
    """Wait until it is no longer pending, at most `within` or a round; return what it is then."""
    return await waiting.settled(confirmation_id, within=within or HOLD)

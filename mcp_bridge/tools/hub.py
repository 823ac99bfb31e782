"""The hub's own tools, for agents whose dangerous action lives elsewhere, and for all who wait."""

from __future__ import annotations

import datetime as dt
import secrets
import uuid
from typing import Annotated, Any, Literal

from django.conf import settings
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, BeforeValidator, Field

from confirmhub import display
from confirmhub.confirmations import ledger, queries
from confirmhub.confirmations.actions import Action, Json, parse_arguments
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Mode, Result, Status
from mcp_bridge import answers, guard, rounds
from mcp_bridge.auth import caller
from mcp_bridge.errors import AsToolErrors
from mcp_bridge.registry import BridgeTool, hub_tool
from mcp_bridge.threads import in_thread

PATIENCE = 45  # seconds; hosts end a call after 60


def _object(value: object) -> object:
    # Some hosts send objects as JSON in a string. Those are read as strictly as a body is.
    return parse_arguments(raw=value.encode("utf-8")) if isinstance(value, str) else value


Id = Annotated[uuid.UUID, Field(description="The confirmation_id that a request returned.")]
Name = Annotated[
    str, Field(description="What will be done, as a short name such as payments.transfer.", max_length=100)
]
Arguments = Annotated[
    dict[str, Any],
    BeforeValidator(_object),
    Field(description="Every value that decides what will be done. The person reads exactly these."),
]
Key = Annotated[
    str | None,
    Field(
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="Your own random key for this attempt. Send the same again if the answer was lost.",
    ),
]


class Found(BaseModel):
    """A confirmation as its requester sees it."""

    confirmation_id: uuid.UUID
    status: Status
    action: str
    arguments: str = Field(description="The arguments as canonical JSON.")
    page: str = Field(description="Where the person decides.")
    check: str = Field(description=answers.CHECK)
    approvals: int = Field(description="How many people have approved it so far, where a group decides.")
    approvals_needed: int
    requested_at: dt.datetime
    decide_by: dt.datetime
    redeem_by: dt.datetime | None
    redeemed_at: dt.datetime | None
    result: Result | None = Field(description="What came of it; null while unknown.")
    next: str = Field(description="What to do now.")

    @classmethod
    def of(cls, row: Confirmation, *, approved: int) -> Found:
        outcome = getattr(row, "outcome", None)
        return cls(
            confirmation_id=row.id,
            status=row.effective_status,
            action=row.action,
            arguments=row.arguments,
            page=answers.page(row.id),
            check=answers.check(row),
            approvals=approved,
            approvals_needed=row.approvals_needed,
            requested_at=row.requested_at,
            decide_by=row.decide_by,
            redeem_by=row.redeem_by,
            redeemed_at=row.redeemed_at,
            result=Result(outcome.result) if outcome else None,
            next=_next(row, approved=approved),
        )


class Listed(BaseModel):
    """The newest confirmations of a requester."""

    confirmations: list[Found]


class Redeemed(BaseModel):
    """The one permission to act."""

    confirmation_id: uuid.UUID
    status: Literal["redeemed", "waiting_for_person", "done"]
    message: str = Field(description="What happened, and what to do now.")
    replayed: bool = Field(description="True: this was redeemed before under the same key. Do not act twice.")


class Closed(BaseModel):
    """A confirmation that was written to."""

    confirmation_id: uuid.UUID
    message: str


async def request_confirmation(
    action: Name,
    arguments: Arguments,
    summary: Annotated[
        str,
        Field(max_length=1000, description="Why you want it, in your words. Shown as yours, not trusted."),
    ] = "",
    idempotency_key: Key = None,
) -> Found:
    """Ask a person to allow one exact action that you will do yourself, elsewhere. Returns at once with the
    page where they decide; show them that link. Asking again for the same while it is open returns the same
    confirmation. Then wait with get_confirmation, and call redeem_confirmation right before you act."""
    with AsToolErrors():
        if guard.find(action):
            raise ToolError(f"{action} is a tool here. Call it itself; it asks the person and does it.")
        asked = await in_thread(
            ledger.request,
            requester=caller(),
            action=_action(action, arguments),
            summary=summary,
            idempotency_key=idempotency_key,
        )
        return await _found(await guard.mine(asked.id))


async def get_confirmation(
    confirmation_id: Id,
    ctx: Context[Any, Any],
    wait_seconds: Annotated[
        int, Field(ge=0, le=PATIENCE, description="How long to wait for a decision, if there is none yet.")
    ] = 0,
) -> Found:
    """See where a confirmation stands, and wait up to 45 seconds for a decision. Changes nothing."""
    with AsToolErrors():
        found = await guard.mine(confirmation_id)
        if wait_seconds and found.effective_status is Status.PENDING:
            await rounds.hold(confirmation_id, ctx, within=dt.timedelta(seconds=wait_seconds))
            found = await guard.mine(confirmation_id)
        return await _found(found)


async def redeem_confirmation(
    confirmation_id: Id,
    ctx: Context[Any, Any],
    action: Annotated[
        Name | None, Field(description="The action you are about to do; not for tools here.")
    ] = None,
    arguments: Annotated[
        Arguments | None, Field(description="Its arguments, exactly as you will use them.")
    ] = None,
    redemption_key: Key = None,
) -> Annotated[CallToolResult, Redeemed]:
    """Spend a yes, once. For a tool of this server, such as delete_file, give the confirmation_id alone: the
    server does it now. For an action of your own give the action and arguments again; when this returns
    redeemed, do exactly that, once, then call report_outcome. Waits up to 20 seconds for a decision."""
    with AsToolErrors():
        found = await guard.mine(confirmation_id)
        if guarded := guard.find(found.action):
            return _of_guarded(await guard.redeem(found, guarded, ctx))
        if action is None or arguments is None:
            raise ToolError("Give the action and the arguments that you are about to carry out.")
        about_to_do = _action(action, arguments)
        if await rounds.is_undecided(found, ctx):
            return _redeemed(found.id, "waiting_for_person", (await _found(found)).next)
        receipt = await in_thread(
            ledger.redeem,
            confirmation_id=confirmation_id,
            requester=caller(),
            action=about_to_do,
            # Without a key of the caller's, no second call can be told from a replay, and is refused.
            redemption_key=redemption_key or secrets.token_urlsafe(24),
        )
        return _redeemed(receipt.confirmation_id, "redeemed", _permission(receipt), replayed=receipt.replayed)


async def report_outcome(
    confirmation_id: Id,
    result: Annotated[Result, Field(description="Whether the action took effect.")],
    detail: Annotated[str, Field(max_length=2000, description="What happened, for the record.")] = "",
) -> Closed:
    """Record what came of an action that you redeemed a confirmation for. Always call it after acting, also
    when it failed: people are shown redemptions without an outcome as open questions."""
    with AsToolErrors():
        found = await guard.mine(confirmation_id)
        if guarded := guard.find(found.action):
            raise ToolError(_of_the_server(found, guarded))
        if found.redeemed_at is None or found.redemption_key is None:
            raise ToolError(
                "It was not redeemed, so there is no outcome. Call redeem_confirmation before you act."
            )
        receipt = Receipt(
            found.id, bytes(found.digest).hex(), found.redemption_key, found.redeemed_at, replayed=True
        )
        await in_thread(ledger.report_outcome, receipt=receipt, result=result, detail=detail)
        return Closed(confirmation_id=found.id, message=f"Recorded: {result}.")


async def cancel_confirmation(confirmation_id: Id) -> Closed:
    """Take back a question that nobody has decided on, because it is no longer wanted."""
    with AsToolErrors():
        await in_thread(ledger.cancel, confirmation_id=confirmation_id, requester=caller())
        return Closed(confirmation_id=confirmation_id, message="The question was taken back.")


async def list_confirmations(
    limit: Annotated[int, Field(ge=1, le=50, description="How many, the newest first.")] = 10,
) -> Listed:
    """List the confirmations that you asked for lately, with where each stands."""
    with AsToolErrors():
        found = await in_thread(queries.list_recent_of, requester=caller(), limit=limit)
        approved = await answers.approvals(found)
        return Listed(confirmations=[Found.of(row, approved=approved[row.id]) for row in found])


def tools() -> list[BridgeTool]:
    """The hub's tools, for the server."""
    return [
        hub_tool(
            request_confirmation,
            title="Ask a person to allow an action",
            scopes=["confirm:request"],
            annotations=_annotations(read_only=False, idempotent=True),
        ),
        hub_tool(
            get_confirmation,
            title="See or await a decision",
            scopes=["confirm:read"],
            annotations=_annotations(read_only=True, idempotent=True),
        ),
        hub_tool(
            redeem_confirmation,
            title="Spend a yes, once",
            scopes=["confirm:redeem"],
            annotations=_annotations(read_only=False, destructive=True),
        ),
        hub_tool(
            report_outcome,
            title="Record what came of it",
            scopes=["confirm:redeem"],
            annotations=_annotations(read_only=False, idempotent=True),
        ),
        hub_tool(
            cancel_confirmation,
            title="Take a question back",
            scopes=["confirm:request"],
            annotations=_annotations(read_only=False),
        ),
        hub_tool(
            list_confirmations,
            title="List recent confirmations",
            scopes=["confirm:read"],
            annotations=_annotations(read_only=True, idempotent=True),
        ),
    ]


def _annotations(*, read_only: bool, destructive: bool = False, idempotent: bool = False) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=False,
    )


def _action(name: str, arguments: dict[str, Json]) -> Action:
    return Action(audience=settings.MCP_RESOURCE, name=name, arguments=arguments)


async def _found(row: Confirmation) -> Found:
    return Found.of(row, approved=(await answers.approvals([row]))[row.id])


def _of_the_server(row: Confirmation, guarded: guard.Guarded[Any]) -> str:
    """Why no outcome is reported of what the server does itself."""
    if row.redeemed_at is None:
        return (
            "The server does this itself once it is redeemed, and records the outcome. It was not redeemed."
        )
    if getattr(row, "outcome", None) is None:
        return guard.unfinished(row, guarded)
    return "The server did this itself and has recorded the outcome."


def _of_guarded(result: CallToolResult) -> CallToolResult:
    answer = answers.Answer.model_validate(result.structured_content)
    return _redeemed(answer.confirmation_id, answer.status, answer.message, replayed=answer.replayed)


def _redeemed(
    confirmation_id: uuid.UUID,
    status: Literal["redeemed", "waiting_for_person", "done"],
    message: str,
    *,
    replayed: bool = False,
) -> CallToolResult:
    found = Redeemed(confirmation_id=confirmation_id, status=status, message=message, replayed=replayed)
    return CallToolResult(
        content=[TextContent(type="text", text=message)], structured_content=found.model_dump(mode="json")
    )


def _permission(receipt: Receipt) -> str:
    if not receipt.replayed:
        return "Redeemed. Do exactly this action now, once, then call report_outcome."
    known = f"The outcome on record: {receipt.result}." if receipt.result else "No outcome is on record."
    return f"It was redeemed before under this key. Do not act again if you acted then. {known}"


_NEXT = {
    Status.PENDING: "{who} {page}. Show them the link and wait with get_confirmation(wait_seconds=45).",
    Status.APPROVED: "It was allowed. Call redeem_confirmation before it runs out at redeem_by.",
    Status.REDEEMED: "It is spent, with no outcome on record. If you acted on it, call report_outcome.",
    Status.DENIED: "The answer was no. Do not ask again for the same.",
    Status.REVOKED: "The yes was taken back.",
    Status.EXPIRED: "Time is up. Ask again if it is still wanted.",
    Status.CANCELLED: "It was taken back. Ask again if it is still wanted.",
}


def _next(row: Confirmation, *, approved: int) -> str:
    """What a model should do about a confirmation in this state."""
    status = row.effective_status
    outcome = getattr(row, "outcome", None)
    if outcome:
        return f"It is spent, and the outcome is on record: {outcome.result}. Nothing is left to do."
    if status is Status.REDEEMED and (guarded := guard.find(row.action)):
        return guard.unfinished(row, guarded)
    who = answers.who_decides(row, where="on", approved=approved)
    text = _NEXT[status].format(page=answers.page(row.id), who=who)
    if status is Status.PENDING and row.mode == Mode.APPROVE:
        text += answers.SLOW
    if not row.settled_reason:
        return text
    return f"{text} The reason given, word for word: {display.short(row.settled_reason, 280)}"

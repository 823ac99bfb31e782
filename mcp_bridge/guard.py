"""Guarded tools: their effect needs a receipt, and the author writes only what is theirs.

The walk of one call: arguments become an Action, `observe` looks at the target, the ledger asks, a
person decides on the page, `observe` looks again, the ledger redeems, `execute` acts, the outcome is
recorded. The SDK's boundary seals the state that a host carries between rounds and binds it to the
caller and the call; still it is only a name here. It is never spent there, and says nothing of the target.
"""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import BaseModel, ValidationError

from confirmhub import display
from confirmhub.confirmations import errors, ledger, queries
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Result, Status
from mcp_bridge import answers, rounds
from mcp_bridge.auth import caller, granted
from mcp_bridge.errors import as_tool_errors, text_of
from mcp_bridge.registry import BridgeTool, model_tool
from mcp_bridge.threads import in_thread

logger = logging.getLogger(__name__)

type Call = Context[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Guarded[Arguments: BaseModel]:
    """A tool whose effect a person allows first, each time.

    `observe` and `execute` block, run in a thread and may use the ORM. Both may raise ToolError, whose
    text reaches the model. `execute` gets what `observe` saw right before, and must act on that target
    or not at all; it says what it did in a sentence. It runs at most once for a receipt.
    """

    name: str
    title: str
    description: str
    question: str
    """What the person is asked, at most 200 characters, such as "Delete this file?"."""

    arguments: type[Arguments]
    """The input model. What it validates to is what is shown, digested and executed."""

    scopes: frozenset[str]
    """The scopes that a token needs besides `confirm:request` and `confirm:redeem`."""

    observe: Callable[[Arguments], Observation]
    execute: Callable[[Receipt, Arguments, Observation], str]
    unfinished: Callable[[uuid.UUID, Arguments], str] = field(default=lambda *_: "")
    """Where to look, in a sentence, when `execute` was cut off for the confirmation of this id."""

    open_world: bool = field(default=False)

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of the definition: no approval outlives a change of what the tool says it does."""
        schema = self.arguments.model_json_schema()
        words = [self.name, self.title, self.description, self.question, schema, sorted(self.scopes)]
        return hashlib.sha256(json.dumps(words, sort_keys=True).encode("ascii")).digest()

    def action(self, arguments: Arguments) -> Action:
        """The action that these arguments stand for, built anew wherever it is needed."""
        return Action(
            audience=settings.MCP_RESOURCE,
            name=self.name,
            arguments=arguments.model_dump(mode="json"),
            tool_digest=self.digest,
        )


_guarded: dict[str, Guarded[Any]] = {}


def find(action: str) -> Guarded[Any] | None:
    """The guarded tool that performs this action, if one is installed."""
    return _guarded.get(action)


def as_tool(guarded: Guarded[Any]) -> BridgeTool:
    """Make a tool for the server, and let redeem_confirmation find it."""
    _guarded[guarded.name] = guarded

    async def call(ctx: Call, **values: Any) -> CallToolResult | InputRequiredResult:
        with as_tool_errors():
            return await _call(guarded, guarded.arguments.model_validate(values), ctx)

    return model_tool(
        call,
        name=guarded.name,
        title=guarded.title,
        description=f"{guarded.description} {_HOW}",
        arguments=guarded.arguments,
        output=answers.Answer,
        scopes=guarded.scopes | {"confirm:request", "confirm:redeem"},
        annotations=ToolAnnotations(
            title=guarded.title,
            read_only_hint=False,
            destructive_hint=True,
            idempotent_hint=False,
            open_world_hint=guarded.open_world,
        ),
    )


_HOW = (
    "A person must allow each call on a page before anything happens. If the answer says waiting_for_person, "
    "show them the page's link; when they have decided, call this again with the same arguments. The yes is "
    "for exactly this call, once."
)


async def redeem(confirmation_id: uuid.UUID, guarded: Guarded[Any], ctx: Call) -> CallToolResult:
    """Carry out what was confirmed, for hosts that come back with the confirmation alone.

    Raises:
        ToolError, ConfirmationError: It was refused; nothing happened.
    """
    if lacking := guarded.scopes - granted():
        raise ToolError(
            f"The access token lacks {', '.join(sorted(lacking))}. Call {guarded.name} itself to get it."
        )
    confirmation = await in_thread(
        queries.get_for_requester, confirmation_id=confirmation_id, requester=caller()
    )
    arguments = guarded.arguments.model_validate(json.loads(confirmation.arguments))
    if guarded.action(arguments).digest != bytes(confirmation.digest):
        raise errors.ActionDiffers  # the tool is another one since
    status = await rounds.hold(confirmation_id)
    if status is Status.PENDING:
        return await _waiting(guarded, confirmation)
    return await _finish(guarded, arguments, confirmation, ctx)


async def _call(
    guarded: Guarded[Any], arguments: BaseModel, ctx: Call
) -> CallToolResult | InputRequiredResult:
    requester = caller()
    if ctx.request_state is None:
        confirmation, is_new = await in_thread(_ask, guarded, arguments, requester)
        if confirmation.status == Status.APPROVED:
            return await _finish(guarded, arguments, confirmation, ctx)
        if rounds.can_open_pages(ctx):
            return rounds.ask(confirmation)
        if is_new:
            # The person has not got the link yet, so there is nobody to wait for.
            return await _waiting(guarded, confirmation)
        number = rounds.LAST
    else:
        state = rounds.State.of(ctx.request_state)
        confirmation = await in_thread(
            queries.get_for_requester, confirmation_id=state.confirmation_id, requester=requester
        )
        # The boundary binds a state to the arguments as they were sent; this binds it to what they mean.
        if guarded.action(arguments).digest != bytes(confirmation.digest):
            raise errors.ActionDiffers
        if rounds.was_declined(ctx):
            await in_thread(_close, confirmation.id, requester)
            raise ToolError(
                "The person declined. Nothing was done, and the question is closed. Do not ask again for it."
            )
        number = state.number

    if await rounds.hold(confirmation.id) is not Status.PENDING:
        return await _finish(guarded, arguments, confirmation, ctx)
    if number >= rounds.LAST or not rounds.is_modern(ctx):
        # Before the client gives up with an error of its own.
        return await _waiting(guarded, confirmation)
    return rounds.once_more(confirmation, number=number + 1)


async def _waiting(guarded: Guarded[Any], confirmation: Confirmation) -> CallToolResult:
    approved = (await answers.approvals([confirmation]))[confirmation.id]
    return answers.waiting(confirmation, again=_again(guarded), approved=approved)


def _ask(guarded: Guarded[Any], arguments: BaseModel, requester: Principal) -> tuple[Confirmation, bool]:
    """Ask, or find what was asked before. The second value says which."""
    seen = guarded.observe(arguments)
    action = guarded.action(arguments)
    for _ in range(2):
        key = f"bridge-{uuid.uuid4()}"  # comes back only on a row that this call made
        confirmation = ledger.request(
            requester=requester,
            action=action,
            observation=seen,
            question=guarded.question,
            idempotency_key=key,
        )
        if confirmation.fingerprint == seen.fingerprint:
            return confirmation, confirmation.idempotency_key == key
        if confirmation.status == Status.APPROVED:
            raise _taken_back(confirmation, requester, "The target changed after it was shown.")
        # The open question is about the target as it was, so what a person would say to it is no
        # answer about what is there now. Close it, and ask about that.
        _close(confirmation.id, requester)
    raise errors.Busy(retry_after=1)


def _close(confirmation_id: uuid.UUID, requester: Principal) -> None:
    try:
        ledger.cancel(confirmation_id=confirmation_id, requester=requester)
    except errors.AlreadyDecided:  # approved, so there is a yes to take back
        ledger.revoke(
            confirmation_id=confirmation_id, revoker=requester, reason="Withdrawn before it was used."
        )


async def _finish(
    guarded: Guarded[Any], arguments: BaseModel, confirmation: Confirmation, ctx: Call
) -> CallToolResult:
    # One call in one thread: a client that leaves, or a server that is told to stop, cannot come
    # between the redemption, the act and its report.
    message, replayed = await in_thread(
        _redeem_and_act, guarded, arguments, confirmation.id, caller(), redemption_key(confirmation.id, ctx)
    )
    return answers.done(confirmation, message=message, replayed=replayed)


def _redeem_and_act(
    guarded: Guarded[Any], arguments: BaseModel, confirmation_id: uuid.UUID, requester: Principal, key: str
) -> tuple[str, bool]:
    confirmation = queries.get_for_requester(confirmation_id=confirmation_id, requester=requester)
    if confirmation.effective_status is Status.PENDING:
        raise errors.Pending(retry_after=1)
    # Only an approval is worth a look at the target. All other states are final: redeem refuses, or
    # finds that this very message was answered before.
    approved = confirmation.effective_status is Status.APPROVED
    seen = _look_again(guarded, arguments, confirmation, requester) if approved else None
    try:
        receipt = ledger.redeem(
            confirmation_id=confirmation_id,
            requester=requester,
            action=guarded.action(arguments),
            redemption_key=key,
        )
    except errors.AlreadyRedeemed as exc:
        outcome = getattr(confirmation, "outcome", None)
        raise ToolError(f"{text_of(exc)} {_recorded(outcome)}") from exc
    if receipt.replayed or seen is None:
        return _replay(receipt), True
    return _act(guarded, receipt, arguments, seen), False


def _look_again(
    guarded: Guarded[Any], arguments: BaseModel, confirmation: Confirmation, requester: Principal
) -> Observation:
    """What the target is now. It must be what the person was shown, or the approval is taken back."""
    try:
        seen = guarded.observe(arguments)
        if seen.fingerprint == confirmation.fingerprint:
            return seen
        why = "The target changed after it was shown."
    except ToolError as exc:
        why = f"The target is not as it was shown: {exc}"
    raise _taken_back(confirmation, requester, why)


def _taken_back(confirmation: Confirmation, requester: Principal, why: str) -> ToolError:
    reason = display.short(why, ledger.MAX_REASON)
    ledger.revoke(confirmation_id=confirmation.id, revoker=requester, reason=reason)
    logger.warning("target changed, approval %s revoked", confirmation.id)
    return ToolError(f"{text_of(errors.TargetChanged())} {why}")


def _act(guarded: Guarded[Any], receipt: Receipt, arguments: BaseModel, seen: Observation) -> str:
    result, detail = Result.FAILED, "The tool failed; the service's log has the cause."
    try:
        detail = guarded.execute(receipt, arguments, seen)
        result = Result.SUCCEEDED
    except ToolError as exc:
        detail = str(exc)
        raise
    finally:
        _report(receipt, result, detail)
    return detail


def _report(receipt: Receipt, result: Result, detail: str) -> None:
    try:
        ledger.report_outcome(receipt=receipt, result=result, detail=detail)
    except (DatabaseError, errors.ConfirmationError):
        # What was done stays done, and the caller must hear of it. The review queue shows the row
        # as redeemed without an outcome.
        logger.exception("outcome %s of %s was not recorded", result, receipt.confirmation_id)


def _replay(receipt: Receipt) -> str:
    if receipt.result is Result.SUCCEEDED:
        return f"This was done before, and was not done again: {receipt.detail}"
    if receipt.result is Result.FAILED:
        raise ToolError(f"This was tried before, and was not tried again. It failed: {receipt.detail}")
    raise ToolError("It is being done, or was cut off. Do not assume either; look with get_confirmation.")


def unfinished(confirmation: Confirmation, guarded: Guarded[Any]) -> str:
    """What to say of one that was redeemed here and has no outcome: what is known, and who can find out."""
    try:
        arguments = guarded.arguments.model_validate(json.loads(confirmation.arguments))
        where = guarded.unfinished(confirmation.id, arguments)
    except ValidationError:
        where = ""  # the tool is another one since
    return (
        "The server began to do it and has recorded no outcome: it is still at it, or was cut off, so it is "
        f"unknown whether it was done. {where}{where and ' '}A person has to look. Do not assume either, and "
        "report no outcome: you did not act."
    )


def _recorded(outcome: Any) -> str:
    if outcome is None:
        return "What came of it is not recorded."
    return f"What came of it then: {outcome.result}. {outcome.detail}"


def redemption_key(confirmation_id: uuid.UUID, ctx: Call) -> str:
    """A key that is the same when the same message comes again, and only then.

    A client that lost the answer and sends its message once more gets the recorded outcome. A new
    message with an old state or id is a replay, and is refused.
    """
    parts = [str(confirmation_id), ctx.request_id, ctx.request_state or ""]
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()


def _again(guarded: Guarded[Any]) -> str:
    return (
        f"call {guarded.name} again with the same arguments, or redeem_confirmation with this "
        f"confirmation_id. Such a call waits up to {rounds.HOLD.total_seconds():.0f} s for the decision."
    )

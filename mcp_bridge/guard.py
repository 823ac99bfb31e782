"""Guarded tools: their effect needs a receipt, and the author writes only what is theirs.

The walk of one call: arguments become an Action, `observe` looks at the target, the ledger asks, a
person decides, `observe` looks again, the ledger redeems, `execute` acts, the outcome is recorded. The
SDK's boundary seals the state that a host carries between rounds and binds it to the caller and the call;
still it is only a name here. It is never spent there, and says nothing of the target.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from functools import partial
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import BaseModel

from confirmhub.confirmations import errors, ledger, queries
from confirmhub.confirmations.actions import Observation
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.queries import Standing
from confirmhub.confirmations.states import Status, Verdict
from mcp_bridge import acting, answers, forms, lookups, rounds
from mcp_bridge.acting import unfinished
from mcp_bridge.auth import caller, granted
from mcp_bridge.errors import AsToolErrors
from mcp_bridge.guarded import Guarded, NotNow, find, install
from mcp_bridge.registry import BridgeTool, model_tool
from mcp_bridge.threads import in_thread

__all__ = ["Guarded", "NotNow", "as_tool", "find", "mine", "redeem", "unfinished"]

type Ctx = Context[Any, Any]

LOOKED_THROUGH = 20  # the newest questions of a requester, for one of the same that was allowed before

_DECLINED = "The person declined. Nothing was done, and the question is closed. Do not ask again for it."


def as_tool(guarded: Guarded[Any]) -> BridgeTool:
    """Make a tool for the server, and let redeem_confirmation find it."""
    install(guarded)

    async def call(ctx: Ctx, **values: Any) -> CallToolResult | InputRequiredResult:
        with AsToolErrors():
            return await _call(_about(guarded, guarded.arguments.model_validate(values)), ctx)

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
        ),
    )


_HOW = (
    "A person must allow each call before anything happens. If the answer says waiting_for_person, show them "
    "the page's link; when they have decided, call this again with the same arguments. The yes is for "
    "exactly this call, once."
)


async def redeem(confirmation: Confirmation, guarded: Guarded[Any], ctx: Ctx) -> CallToolResult:
    """Carry out what the caller asked for, for hosts that come back with the confirmation's id alone.

    Raises:
        ToolError, ConfirmationError: It was refused; nothing happened.
    """
    if lacking := guarded.scopes - granted():
        raise ToolError(
            f"The access token lacks {', '.join(sorted(lacking))}. Call {guarded.name} itself to get it."
        )
    call = _about(guarded, guarded.arguments.model_validate(json.loads(confirmation.arguments)))
    _check_same(call, confirmation.digest)  # the tool may be another one since
    if await rounds.is_undecided(confirmation, ctx):
        return await _waiting(guarded, confirmation)
    return await _finish(call, confirmation.id, ctx)


async def _call(call: acting.Call, ctx: Ctx) -> CallToolResult | InputRequiredResult:
    if (carried := ctx.request_state) is None:  # an answer without a state answers nothing that we asked
        return await _first_round(call, ctx)
    state = rounds.State.of(carried)
    found = await lookups.standing(state.confirmation_id, call.requester)
    # The boundary binds a state to the arguments as they were sent; this binds it to what they mean.
    _check_same(call, found.digest)
    answer = rounds.answer(ctx, state)
    if answer is not None and answer.action != "accept":
        await in_thread(_close, found.id, call.requester)
        raise ToolError(_DECLINED)
    # An accepted page says only that it was opened. An accepted form says what they chose.
    if not state.shown or not rounds.is_modern(ctx):
        if found.status is Status.PENDING:
            return await _held(call, state, ctx)
        return await _act(call, found, ctx)
    chosen = forms.verdict(answer.content if answer else None)
    if chosen is None:
        return await _ask_again(call, state)
    await in_thread(_answer, found.id, call.requester, chosen, state.shown)
    return await _finish(call, found.id, ctx)


async def _first_round(call: acting.Call, ctx: Ctx) -> CallToolResult | InputRequiredResult:
    with rounds.place_to_look():
        seen = await acting.first_look(call)
    confirmation = await in_thread(_ask, call, seen)
    if confirmation.status == Status.APPROVED:
        return await _finish(call, confirmation.id, ctx)
    if rounds.can_open_pages(ctx):
        return rounds.ask(confirmation)
    may_answer = forms.may_answer(confirmation, ctx)
    changes = await in_thread(_changes, confirmation) if may_answer or confirmation.is_new else ()
    form = forms.ask(confirmation, changes=changes, number=1) if may_answer else None
    if form is not None:
        return form
    if confirmation.is_new:
        # The person has not got the link yet, so there is nobody to wait for.
        return await _waiting(call.guarded, confirmation, changes=changes)
    return await _held(call, rounds.State(confirmation.id, rounds.LAST), ctx)


async def _held(call: acting.Call, state: rounds.State, ctx: Ctx) -> CallToolResult | InputRequiredResult:
    """Wait for a decision for a round, and act on it; without one, have the host come back while it may."""
    status = await rounds.hold(state.confirmation_id, ctx)
    if status not in (None, Status.PENDING):
        return await _finish(call, state.confirmation_id, ctx)
    if status is None or state.number >= rounds.LAST or not rounds.is_modern(ctx):
        # Before the client gives up with an error of its own, or comes back at once and again.
        return await _waiting(call.guarded, await mine(state.confirmation_id))
    return rounds.once_more(state)


async def _ask_again(call: acting.Call, state: rounds.State) -> CallToolResult | InputRequiredResult:
    """MCP 2026-07-28, multi round-trip requests: ask again where an answer is missing. Within the rounds."""
    confirmation = await mine(state.confirmation_id)
    changes = await in_thread(_changes, confirmation)
    form = forms.ask(confirmation, changes=changes, number=state.number + 1)
    if state.number >= rounds.LAST or form is None:
        return await _waiting(call.guarded, confirmation)
    return form


async def _waiting(
    guarded: Guarded[Any], confirmation: Confirmation, *, changes: tuple[forms.Change, ...] = ()
) -> CallToolResult:
    approved = (await answers.approvals([confirmation]))[confirmation.id]
    changed = [label for label, *_ in changes]
    return answers.waiting(confirmation, again=_again(guarded), approved=approved, changed=changed)


def _about(guarded: Guarded[Any], arguments: BaseModel) -> acting.Call:
    return acting.Call(guarded, arguments, guarded.action(arguments), caller())


def _check_same(call: acting.Call, digest: bytes | memoryview) -> None:
    if call.action.digest != bytes(digest):
        raise errors.ActionDiffers


async def mine(confirmation_id: uuid.UUID) -> Confirmation:
    """The caller's own confirmation of this id.

    Raises:
        NotFound: No such confirmation, or not theirs.
    """
    return await in_thread(queries.get_for_requester, confirmation_id=confirmation_id, requester=caller())


def _ask(call: acting.Call, seen: Observation) -> Confirmation:
    """Ask, or find what was asked before."""
    for _ in range(2):
        confirmation = ledger.request(
            requester=call.requester,
            action=call.action,
            observation=seen,
            question=call.guarded.question,
        )
        if confirmation.fingerprint == seen.fingerprint:
            return confirmation
        if confirmation.status == Status.APPROVED:
            raise acting.changed(confirmation.id, call)
        # The open question is about the target as it was, so what a person would say to it is no
        # answer about what is there now. Close it, and ask about that.
        _close(confirmation.id, call.requester)
    raise errors.Busy(retry_after=errors.SOON)


def _changes(confirmation: Confirmation) -> tuple[forms.Change, ...]:
    """What is another than when this was allowed last, if that approval was taken back."""
    before = queries.last_approved_same(confirmation=confirmation, among=LOOKED_THROUGH)
    if before is None or before.status != Status.REVOKED:
        return ()
    was = dict(before.fact_items)
    return tuple(
        (label, was.get(label, ""), now) for label, now in confirmation.fact_items if was.get(label) != now
    )


def _answer(confirmation_id: uuid.UUID, requester: Principal, chosen: Verdict, shown: str) -> None:
    """Record what the person chose in their host's form.

    Raises:
        ToolError: They chose no.
        ConfirmationError: As for `ledger.answer_by_host`.
    """
    try:
        ledger.answer_by_host(
            confirmation_id=confirmation_id, requester=requester, verdict=chosen, digest_shown=shown
        )
    except errors.AlreadyDecided:
        # By now it is what it is, and `redeem` says so. A no still takes a yes of the page back.
        if chosen is Verdict.DENY:
            _close(confirmation_id, requester)
    if chosen is Verdict.DENY:
        raise ToolError(_DECLINED)


def _close(confirmation_id: uuid.UUID, requester: Principal) -> None:
    try:
        ledger.cancel(confirmation_id=confirmation_id, requester=requester)
    except errors.AlreadyDecided:  # approved, so there is a yes to take back
        ledger.revoke(
            confirmation_id=confirmation_id, revoker=requester, reason="Withdrawn before it was used."
        )


async def _finish(call: acting.Call, confirmation_id: uuid.UUID, ctx: Ctx) -> CallToolResult:
    return await _act(call, await lookups.standing(confirmation_id, call.requester), ctx)


async def _act(call: acting.Call, confirmation: Standing, ctx: Ctx) -> CallToolResult:
    key = redemption_key(confirmation.id, ctx)
    check = partial(rounds.check_caller, ctx)
    done = await acting.redeem_and_act(call, confirmation, key, check_caller=check)
    return answers.done(done.confirmation, message=done.message, replayed=done.replayed)


def redemption_key(confirmation_id: uuid.UUID, ctx: Ctx) -> str:
    """A key that is the same when the same message comes again, and only then.

    A client that lost the answer and sends its message once more gets the recorded outcome. A new
    message with an old state or id is a replay, and is refused.
    """
    # No two messages give the same: each part but the first is between quotes.
    message = f"{confirmation_id} {ctx.request_id!a} {ctx.request_state!a}"
    return hashlib.sha256(message.encode("ascii")).hexdigest()


def _again(guarded: Guarded[Any]) -> str:
    return (
        f"call {guarded.name} again with the same arguments, or redeem_confirmation with this "
        f"confirmation_id. Such a call waits up to {rounds.HOLD.total_seconds():.0f} s for the decision."
    )

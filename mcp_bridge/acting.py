"""What happens once a person has decided: look again, redeem, act, report. One task for each call.

A call that has its turn has its task. A client that leaves, or a server that is told to stop, cannot come
between these steps then: nobody cancels the task, and the bridge ends after it. Whoever leaves before the
turn has done nothing, and the yes is kept.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple, TypedDict

from django.db import Error as DatabaseError
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, ValidationError

from confirmhub import display
from confirmhub.confirmations import errors, ledger, queries, redeemer
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.queries import Standing
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Result, Status
from mcp_bridge.errors import text_of
from mcp_bridge.guarded import Guarded, NotNow, call_author, in_time
from mcp_bridge.threads import Turn, in_thread, look_in_thread, turn

logger = logging.getLogger(__name__)

# Hosts end a call after 60 s, and it may have waited 20 s for a person. What has been redeemed has no limit.
LOOK_WITHIN = 30.0  # seconds

LONG = 1.0  # seconds of waiting for a turn, after which the caller may have left, or lost the right to it

type _Run = Callable[..., Awaitable[Any]]  # a function in a thread, with its arguments
type _Check = Callable[[], Awaitable[None]]

_NO_TURN = nullcontext()

_CUT_OFF = "It is being done, or was cut off. Do not assume either; look with get_confirmation."


class Done(NamedTuple):
    """What was done of which confirmation, in words."""

    confirmation: Standing
    message: str
    replayed: bool
    """Whether it was done before, and not now."""


class Call(NamedTuple):
    """A call of a guarded tool, and what it is about to do."""

    guarded: Guarded[Any]
    arguments: BaseModel
    action: Action
    """What these arguments stand for."""

    requester: Principal


class _Redemption(TypedDict):
    confirmation_id: uuid.UUID
    requester: Principal
    action: Action
    redemption_key: str


class _Came(NamedTuple):
    result: Result
    detail: str
    raised: Exception | None = None


_tasks: set[asyncio.Task[Done]] | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Let what has begun end before the block does: inside of all that it uses."""
    global _tasks  # noqa: PLW0603 - one a process, set and unset by its lifespan alone
    mine = _tasks = set[asyncio.Task[Done]]()
    try:
        yield
    finally:
        _tasks = None
        if mine:
            await asyncio.wait(mine)


async def redeem_and_act(call: Call, confirmation: Standing, key: str, *, check_caller: _Check) -> Done:
    """Spend the yes and act, or tell what came of it before. `key` is the redemption's.

    `check_caller` raises where there is nobody to act for any more. It is asked after a long wait.

    Raises:
        ToolError, ConfirmationError: It was refused, or it failed; the text says which.
        RuntimeError: The bridge is not running.
    """
    if confirmation.status is Status.PENDING:
        raise errors.Pending(retry_after=errors.SOON)
    about_to_do = _Redemption(
        confirmation_id=confirmation.id, requester=call.requester, action=call.action, redemption_key=key
    )
    # Only an approval is worth a look at the target. All other states are final: redeem refuses, or
    # finds that this very message was answered before.
    if confirmation.status is not Status.APPROVED:
        before = await in_thread(_redeem, ledger.redeem, about_to_do)
        return Done(confirmation, _replay(before), replayed=True)
    mine = await turn() if call.guarded.observe_blocks or call.guarded.execute_blocks else None
    if _tasks is None:
        if mine:
            mine.end()
        raise errors.Busy(retry_after=errors.SOON)  # the bridge is stopping
    task = asyncio.create_task(_redeem_and_act(call, confirmation, about_to_do, mine, check_caller))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return await asyncio.shield(task)


async def _redeem_and_act(
    call: Call, confirmation: Standing, about_to_do: _Redemption, mine: Turn | None, check_caller: _Check
) -> Done:
    run = mine.threads.run if mine else in_thread
    with mine or _NO_TURN:
        if mine and mine.waited >= LONG:
            await check_caller()
        seen = await _look_again(call, confirmation, run)
        if call.guarded.one_transaction:
            share = partial(ledger.redeem_with, effect=_effect(call, seen))
            shared = await run(_redeem, share, about_to_do)
            done = _replay(shared) if shared.replayed else shared.detail
            return Done(confirmation, done, replayed=shared.replayed)
        receipt = await redeemer.redeem_together(**about_to_do)
        if receipt is None:
            receipt = await run(_redeem, ledger.redeem, about_to_do)
        if receipt.replayed:
            return Done(confirmation, _replay(receipt), replayed=True)
        came = await _execute(call, receipt, seen, run)
    await _report(receipt, came)  # in nobody's turn, since most reports need no thread
    if came.raised is not None:
        raise came.raised
    return Done(confirmation, came.detail, replayed=False)


def _redeem(spend: Callable[..., Receipt], about_to_do: _Redemption) -> Receipt:
    try:
        return spend(**about_to_do)
    except errors.AlreadyRedeemed as exc:
        spent = queries.get_for_requester(
            confirmation_id=about_to_do["confirmation_id"], requester=about_to_do["requester"]
        )
        raise ToolError(f"{text_of(exc)} {_recorded(getattr(spent, 'outcome', None))}") from exc


async def _look_again(call: Call, confirmation: Standing, run: _Run) -> Observation:
    """What the target is now. It must be what the person was shown, or the approval is taken back."""
    try:
        seen = await look(call, run)
    except NotNow:
        raise  # the yes stays
    except ToolError as exc:
        again = f"Call {call.guarded.name} again only if that was put right."
        why = f"The target is not as it was shown: {exc}"
        raise await run(_taken_back, confirmation.id, call.requester, why, again) from exc
    if seen.fingerprint != confirmation.fingerprint:
        raise await run(changed, confirmation.id, call)
    return seen


async def first_look(call: Call) -> Observation:
    """What the target is before anybody is asked. It may be given up at any moment.

    Raises:
        NotNow: It took too long, or waited too long for a thread.
        TypeError: As `look`.
    """
    return await in_time(look(call, look_in_thread), LOOK_WITHIN)


async def look(call: Call, run: _Run) -> Observation:
    """What the target is. `run` is for what blocks, and has no limit: a thread cannot be ended.

    Raises:
        NotNow: A coroutine took too long.
        TypeError: `observe` gave something else. Nobody is asked about a target that was not looked at.
    """
    in_thread = run if call.guarded.observe_blocks else None
    seen: object = await call_author(in_thread, call.guarded.observe, call.arguments, within=LOOK_WITHIN)
    if not isinstance(seen, Observation):
        given = type(seen).__name__
        raise TypeError(f"observe of {call.guarded.name} returned {given} where an Observation is due")
    return seen


def changed(confirmation_id: uuid.UUID, call: Call) -> ToolError:
    """Take an approval back, since it is of what is there no longer; what to raise."""
    again = f"Call {call.guarded.name} again with the same arguments: the person is shown what changed."
    return _taken_back(confirmation_id, call.requester, "The target changed after it was shown.", again)


def _taken_back(confirmation_id: uuid.UUID, requester: Principal, why: str, again: str) -> ToolError:
    reason = display.short(why, ledger.MAX_REASON)
    ledger.revoke(confirmation_id=confirmation_id, revoker=requester, reason=reason)
    logger.warning("target changed, approval %s revoked", confirmation_id)
    return ToolError(f"{text_of(errors.TargetChanged())} {why} {again}")


def _effect(call: Call, seen: Observation) -> Callable[[Receipt], str]:
    def effect(receipt: Receipt) -> str:
        try:
            done = call.guarded.execute(receipt, call.arguments, seen)
        except ToolError as exc:
            raise ToolError(f"{exc} Nothing was done, and the yes was not used.") from exc
        if inspect.isawaitable(done):
            if inspect.iscoroutine(done):
                done.close()
            raise TypeError(f"{call.guarded.name} gave something to await, which would be no part of this")
        return _told(call, done)

    return effect


async def _execute(call: Call, receipt: Receipt, seen: Observation, run: _Run) -> _Came:
    in_thread = run if call.guarded.execute_blocks else None
    try:
        done = await call_author(in_thread, call.guarded.execute, receipt, call.arguments, seen)
    except ToolError as exc:
        return _Came(Result.FAILED, str(exc), exc)
    except asyncio.CancelledError as exc:
        raise ToolError(_CUT_OFF) from exc  # nobody knows how far it came, so nothing is recorded
    except Exception as exc:  # noqa: BLE001 - it is raised once it is on record
        return _Came(Result.FAILED, "The tool failed; the service's log has the cause.", exc)
    return _Came(Result.SUCCEEDED, _told(call, done))


def _told(call: Call, done: object) -> str:
    """What the tool says that it did; it has acted, whatever it returns."""
    if isinstance(done, str):
        return done
    logger.error("%s returned %s where a text is due", call.guarded.name, type(done).__name__)
    return "It was done. The tool did not say what came of it."


async def _report(receipt: Receipt, came: _Came) -> None:
    result, detail = came.result, came.detail
    try:
        if not await redeemer.report_together(receipt=receipt, result=result, detail=detail):
            await in_thread(ledger.report_outcome, receipt=receipt, result=result, detail=detail)
    except (DatabaseError, errors.ConfirmationError):
        # What was done stays done, and the caller must hear of it. The review queue shows the row
        # as redeemed without an outcome.
        logger.exception("outcome %s of %s was not recorded", result, receipt.confirmation_id)


def _replay(receipt: Receipt) -> str:
    if receipt.result is Result.SUCCEEDED:
        return f"This was done before, and was not done again: {receipt.detail}"
    if receipt.result is Result.FAILED:
        raise ToolError(f"This was tried before, and was not tried again. It failed: {receipt.detail}")
    raise ToolError(_CUT_OFF)


def _recorded(outcome: Any) -> str:
    if outcome is None:
        return "What came of it is not recorded."
    return f"What came of it then: {outcome.result}. {outcome.detail}"


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

"""The async side of `ledger.redeem` and `ledger.report_outcome`: what arrives together is one statement.

The statements are the ledger's own, so there is one of each to read and to prove. Whoever is not served by
one, and each of a batch that failed as a whole, goes to the ledger alone, which says why; the redemption
key makes that safe even when nobody knows whether the batch was committed.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from confirmhub.confirmations import ledger, rows, spending
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.batches import Batches
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Result
from confirmhub.confirmations.threads import Threads

ALONE = 4  # threads for those whom no batch serves, each with a connection
CONNECTIONS = 2  # of each statement; while one commits, the other takes what has queued
APPLICATION = "confirmhub redeemer"  # its connections' name in pg_stat_activity


class _Running(NamedTuple):
    redemptions: Batches[rows.Redemption, Receipt]
    reports: Batches[spending.Report, bool]
    alone: Threads


_running: _Running | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Serve this event loop for as long as the block runs: the application's lifespan."""
    global _running  # noqa: PLW0603 - one a process, set and unset by its lifespan alone
    mine = _Running(
        Batches(
            rows.REDEEM,
            parameters=rows.redeem_parameters,
            read=_receipt,
            connections=CONNECTIONS,
            name=APPLICATION,
        ),
        Batches(
            spending.REPORT,
            parameters=spending.report_parameters,
            read=lambda _, row: bool(row[1]),
            connections=CONNECTIONS,
            name=APPLICATION,
        ),
        Threads(count=ALONE, name="redeemer"),
    )
    async with mine.redemptions.running(), mine.reports.running():
        _running = mine
        try:
            yield
        finally:
            _running = None
            await mine.alone.close()


async def redeem(
    *, confirmation_id: uuid.UUID, requester: Principal, action: Action, redemption_key: str
) -> Receipt:
    """Spend an approved confirmation, exactly as `ledger.redeem` does, and with its refusals.

    A caller that is cancelled loses nothing: the same key gets the receipt, marked replayed.

    Raises:
        ConfirmationError: As for `ledger.redeem`.
        RuntimeError: `running` does not run in this process.
    """
    asked: dict[str, Any] = {
        "confirmation_id": confirmation_id,
        "requester": requester,
        "action": action,
        "redemption_key": redemption_key,
    }
    if (receipt := await redeem_together(**asked)) is not None:
        return receipt
    return await _now().alone.run(ledger.redeem, **asked)


async def redeem_together(
    *, confirmation_id: uuid.UUID, requester: Principal, action: Action, redemption_key: str
) -> Receipt | None:
    """The same where it can be spent. None: ask `ledger.redeem`, which says why, or has the receipt.

    Raises:
        InvalidAction: The redemption key is malformed.
        RuntimeError: `running` does not run in this process.
    """
    rows.check_key(redemption_key, of="redemption")
    asked = rows.Redemption(confirmation_id, requester, action, redemption_key)
    return await _now().redemptions.ask(asked)


async def report_together(*, receipt: Receipt, result: Result, detail: str) -> bool:
    """Record what came of the execution. False: ask `ledger.report_outcome`, which does, or says why not.

    Raises:
        RuntimeError: `running` does not run in this process.
    """
    asked = spending.Report.of(receipt=receipt, result=result, detail=detail)
    return bool(await _now().reports.ask(asked))


def _now() -> _Running:
    if _running is None:
        raise RuntimeError("redeemer.running() must run in the application's lifespan.")
    return _running


def _receipt(asked: rows.Redemption, row: tuple[Any, ...]) -> Receipt:
    digest = asked.action.digest.hex()
    return Receipt(asked.confirmation_id, digest, asked.redemption_key, row[1], replayed=False)

"""Whose a token is, and how a confirmation stands: looked up from the event loop, many in one statement.

Nothing is remembered from one look-up to the next, so what was revoked is refused at once.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from confirmhub.confirmations import errors, queries
from confirmhub.confirmations.lookups import Reader, Together
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.queries import Standing
from confirmhub.confirmations.threads import Threads
from confirmhub.oauth import bearer
from confirmhub.oauth.bearer import Bearer

APPLICATION = "confirmhub bridge"  # the name of its connection in pg_stat_activity


class _Lookups:
    def __init__(self) -> None:
        self.reader = Reader(name=APPLICATION)
        # Of its own, so that nobody's token waits behind what others' tools look at.
        self.writer = Threads(count=1, name="bridge-tokens")
        self.tokens = Together(self._tokens)
        self.standings = Together(self._standings)

    async def close(self) -> None:
        await self.tokens.close()
        await self.standings.close()
        await self.reader.close()
        await self.writer.close()

    async def _tokens(self, tokens: list[str]) -> dict[str, Bearer]:
        rows = await self.reader.rows(*bearer.statement(tokens=tokens, for_api=False))
        found, used = bearer.read(tokens=tokens, rows=rows)
        if used:
            await self.writer.run(bearer.note_use, ids=used)
        return found

    async def _standings(
        self, asked: list[tuple[uuid.UUID, Principal]]
    ) -> dict[tuple[uuid.UUID, Principal], Standing]:
        rows = await self.reader.rows(*queries.statement_of_standings(asked=asked))
        return queries.read_standings(asked=asked, rows=rows)


_lookups: _Lookups | None = None


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """Serve for as long as the block runs."""
    global _lookups  # noqa: PLW0603 - one per process, like the connection that it keeps
    mine = _lookups = _Lookups()
    try:
        yield
    finally:
        _lookups = None
        await mine.close()


async def bearer_of(token: str) -> Bearer | None:
    """Whose token this is now, as the API has it, and for no service.

    Raises:
        Busy: The database does not answer.
    """
    return await _running().tokens.find(token)


async def standing(confirmation_id: uuid.UUID, requester: Principal) -> Standing:
    """How a requester's own confirmation stands now.

    Raises:
        NotFound: No such confirmation, or not theirs.
        Busy: The database does not answer.
    """
    found = await _running().standings.find((confirmation_id, requester))
    if found is None:
        raise errors.NotFound
    return found


def _running() -> _Lookups:
    if _lookups is None:
        raise RuntimeError("The bridge is not running: its lifespan was not entered.")
    return _lookups

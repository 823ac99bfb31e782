"""The hub, sync and async. Both send the same steps; what is lost on the way is sent again, with its keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import httpx2

from confirmhub_client import steps
from confirmhub_client.attempts import Access, Attempts
from confirmhub_client.errors import Refused, Unreachable, Unreported
from confirmhub_client.steps import Call, Question, Steps
from confirmhub_client.values import Arguments, Confirmation, Receipt

_UNTOLD = "That it failed could not be reported to the hub."


class Hub:
    """A confirmhub, as one service reaches it. Threads may share one."""

    def __init__(
        self,
        url: str,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        token: str | None = None,
    ) -> None:
        """Give what the administrator was shown who made the service, or an access token."""
        self._access = Access(url, client_id=client_id, client_secret=client_secret, token=token)
        self._http = httpx2.Client(follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    @contextmanager
    def confirm(
        self,
        action: str,
        arguments: Arguments,
        *,
        summary: str = "",
        on_behalf_of: str | None = None,
        question: str | None = None,
        facts: tuple[tuple[str, str], ...] = (),
        fingerprint: str = "",
        idempotency_key: str | None = None,
        redemption_key: str | None = None,
        within: float | None = None,
    ) -> Iterator[Receipt]:
        """Ask, wait, spend the yes, run the block, and report what came of it.

        `within` is how many seconds to wait at most; without it, as long as the policy gives people.

        Raises:
            Replayed: The redemption key of yours was used before. The block does not run.
            Refused: There is no yes. The block does not run.
            Unreachable: The hub cannot be reached. The block does not run.
            Unreported: The block ran, and the hub could not be told. What the block raises goes first.
        """
        asked = Question(action, arguments, summary, on_behalf_of, question, facts, fingerprint)
        receipt = self._run(
            steps.confirm(
                asked, idempotency_key=idempotency_key, redemption_key=redemption_key, within=within
            )
        )
        try:
            yield receipt
        except BaseException as exc:
            try:
                self.report(receipt, result="failed", detail=type(exc).__name__)
            except (Refused, Unreachable) as untold:
                exc.add_note(f"{_UNTOLD} {untold}")
            raise
        try:
            self.report(receipt, result="succeeded")
        except (Refused, Unreachable) as exc:
            raise Unreported(receipt) from exc

    def ask(
        self,
        action: str,
        arguments: Arguments,
        *,
        summary: str = "",
        on_behalf_of: str | None = None,
        question: str | None = None,
        facts: tuple[tuple[str, str], ...] = (),
        fingerprint: str = "",
        idempotency_key: str | None = None,
    ) -> Confirmation:
        """Ask, and do not wait."""
        asked = Question(action, arguments, summary, on_behalf_of, question, facts, fingerprint)
        return self._run(steps.ask(asked, idempotency_key=idempotency_key))

    def get(self, confirmation_id: str) -> Confirmation:
        """Where it stands."""
        return self._run(steps.read(confirmation_id))

    def wait(self, confirmation_id: str, *, within: float | None = None) -> Confirmation:
        """Where it stands once it was decided, or after `within` seconds."""
        return self._run(steps.wait(confirmation_id, within=within))

    def redeem(
        self, confirmation_id: str, action: str, arguments: Arguments, *, redemption_key: str | None = None
    ) -> Receipt:
        """Spend a yes for the action that is about to be taken."""
        return self._run(
            steps.redeem(confirmation_id, action=action, arguments=arguments, redemption_key=redemption_key)
        )

    def report(self, receipt: Receipt, *, result: str, detail: str = "") -> None:
        """Report what came of it: succeeded or failed."""
        self._run(steps.report(receipt, result=result, detail=detail))

    def cancel(self, confirmation_id: str, *, reason: str = "") -> Confirmation:
        """Take back a question that nobody has decided on."""
        return self._run(steps.cancel(confirmation_id, reason=reason))

    def receipt(self, confirmation_id: str) -> str:
        """The signed receipt of a spent confirmation, to keep and to verify offline."""
        return self._run(steps.signed(confirmation_id))

    def _run[T](self, what: Steps[T]) -> T:
        try:
            call = next(what)
            while True:
                try:
                    answer = self._send(call)
                except (Refused, Unreachable) as exc:
                    call = what.throw(exc)
                else:
                    call = what.send(answer)
        except StopIteration as done:
            value: T = done.value
            return value

    def _send(self, call: Call) -> dict[str, Any]:
        attempts = Attempts(self._access)
        while True:
            answer: httpx2.Response | httpx2.TransportError
            try:
                wanted = self._access.request()
                if wanted is None or self._access.take(answer := self._http.send(wanted)):
                    answer = self._http.send(self._access.of(call))
            except httpx2.TransportError as exc:
                answer = exc
            said = attempts.judge(answer)
            if not isinstance(said, float):
                return said
            time.sleep(said)


class AsyncHub:
    """The same for asyncio."""

    def __init__(
        self,
        url: str,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        token: str | None = None,
    ) -> None:
        """Give what the administrator was shown who made the service, or an access token."""
        self._access = Access(url, client_id=client_id, client_secret=client_secret, token=token)
        self._http = httpx2.AsyncClient(follow_redirects=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    @asynccontextmanager
    async def confirm(
        self,
        action: str,
        arguments: Arguments,
        *,
        summary: str = "",
        on_behalf_of: str | None = None,
        question: str | None = None,
        facts: tuple[tuple[str, str], ...] = (),
        fingerprint: str = "",
        idempotency_key: str | None = None,
        redemption_key: str | None = None,
        within: float | None = None,
    ) -> AsyncIterator[Receipt]:
        """As `Hub.confirm`."""
        asked = Question(action, arguments, summary, on_behalf_of, question, facts, fingerprint)
        receipt = await self._run(
            steps.confirm(
                asked, idempotency_key=idempotency_key, redemption_key=redemption_key, within=within
            )
        )
        try:
            yield receipt
        except BaseException as exc:
            # Also when the task is cancelled: what was begun must not look as if nothing had happened.
            try:
                await asyncio.shield(self.report(receipt, result="failed", detail=type(exc).__name__))
            except (Refused, Unreachable) as untold:
                exc.add_note(f"{_UNTOLD} {untold}")
            raise
        try:
            await self.report(receipt, result="succeeded")
        except (Refused, Unreachable) as exc:
            raise Unreported(receipt) from exc

    async def ask(
        self,
        action: str,
        arguments: Arguments,
        *,
        summary: str = "",
        on_behalf_of: str | None = None,
        question: str | None = None,
        facts: tuple[tuple[str, str], ...] = (),
        fingerprint: str = "",
        idempotency_key: str | None = None,
    ) -> Confirmation:
        """As `Hub.ask`."""
        asked = Question(action, arguments, summary, on_behalf_of, question, facts, fingerprint)
        return await self._run(steps.ask(asked, idempotency_key=idempotency_key))

    async def get(self, confirmation_id: str) -> Confirmation:
        """As `Hub.get`."""
        return await self._run(steps.read(confirmation_id))

    async def wait(self, confirmation_id: str, *, within: float | None = None) -> Confirmation:
        """As `Hub.wait`."""
        return await self._run(steps.wait(confirmation_id, within=within))

    async def redeem(
        self, confirmation_id: str, action: str, arguments: Arguments, *, redemption_key: str | None = None
    ) -> Receipt:
        """As `Hub.redeem`."""
        return await self._run(
            steps.redeem(confirmation_id, action=action, arguments=arguments, redemption_key=redemption_key)
        )

    async def report(self, receipt: Receipt, *, result: str, detail: str = "") -> None:
        """As `Hub.report`."""
        await self._run(steps.report(receipt, result=result, detail=detail))

    async def cancel(self, confirmation_id: str, *, reason: str = "") -> Confirmation:
        """As `Hub.cancel`."""
        return await self._run(steps.cancel(confirmation_id, reason=reason))

    async def receipt(self, confirmation_id: str) -> str:
        """As `Hub.receipt`."""
        return await self._run(steps.signed(confirmation_id))

    async def _run[T](self, what: Steps[T]) -> T:
        try:
            call = next(what)
            while True:
                try:
                    answer = await self._send(call)
                except (Refused, Unreachable) as exc:
                    call = what.throw(exc)
                else:
                    call = what.send(answer)
        except StopIteration as done:
            value: T = done.value
            return value

    async def _send(self, call: Call) -> dict[str, Any]:
        attempts = Attempts(self._access)
        while True:
            answer: httpx2.Response | httpx2.TransportError
            try:
                wanted = self._access.request()
                if wanted is None or self._access.take(answer := await self._http.send(wanted)):
                    answer = await self._http.send(self._access.of(call))
            except httpx2.TransportError as exc:
                answer = exc
            said = attempts.judge(answer)
            if not isinstance(said, float):
                return said
            await asyncio.sleep(said)

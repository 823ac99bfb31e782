"""The hub, sync and async. Both send the same steps; what is lost on the way is sent again, with its keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from confirmhub_client import steps
from confirmhub_client.errors import Refused, Unreachable, Unreported, refusal
from confirmhub_client.steps import Call, Question, Steps
from confirmhub_client.values import Arguments, Confirmation, Receipt

SCOPES = "confirm:read confirm:request confirm:redeem"
ATTEMPTS = 6  # of one call
PAUSE = 0.5  # seconds before the second attempt, twice as long before each after it
LONGEST_PAUSE = 30.0  # seconds, also of those that the hub asks for
BUSY = "urn:confirmhub:busy"  # the one refusal of a 5xx that promises that nothing was done
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_UNTOLD = "That it failed could not be reported to the hub."


class _Access:
    """The service's token: fetched when there is none, and again shortly before it ends or when refused."""

    def __init__(self, url: str, client_id: str | None, client_secret: str | None, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
            raise ValueError("The hub's URL must be https; http is for this machine alone.")
        if (token is None) == (client_id is None or client_secret is None):
            raise ValueError("Give a client_id with its client_secret, or a token.")
        self.base = f"{parts.scheme}://{parts.netloc}"
        self._client = (client_id or "", client_secret or "")
        self._token, self._until = token, float("inf")
        self.is_given = token is not None

    def request(self) -> httpx2.Request | None:
        """What to send for a new token, if one is needed."""
        if self._token is not None and time.monotonic() < self._until:
            return None
        form = {"grant_type": "client_credentials", "scope": SCOPES}
        auth = httpx2.BasicAuth(*self._client)
        request = httpx2.Request("POST", f"{self.base}/oauth/token", data=form)
        return next(auth.auth_flow(request))

    def take(self, answer: httpx2.Response) -> bool:
        """Whether there is a token now; False: the hub cannot give one at present.

        Raises:
            Refused: The credentials are wrong.
        """
        if _is_for_now(answer):
            return False
        body = _body(answer)
        if answer.status_code != httpx2.codes.OK:
            why = body.get("error_description") or body.get("error") or body.get("title")
            raise Refused({"title": f"{self.base} gave no token: {why}. Check client_id and client_secret."})
        self._token = str(body["access_token"])
        self._until = time.monotonic() + max(0, int(body["expires_in"]) - 30)
        return True

    def forget(self) -> None:
        self._token = None

    def of(self, call: Call) -> httpx2.Request:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **call.headers}
        timeout = httpx2.Timeout(call.timeout).as_dict()
        return httpx2.Request(
            call.method,
            f"{self.base}/api/v1/{call.path}",
            headers=headers,
            json=call.body,
            extensions={"timeout": timeout},
        )


class _Attempts:
    """How often one call was tried, and what its answers mean."""

    def __init__(self, access: _Access) -> None:
        self._access = access
        self._count = 0
        self._refreshed = access.is_given
        self._is_untouched = True  # so far as is known: no attempt can have done what was asked

    def judge(self, answer: httpx2.Response | httpx2.TransportError) -> dict[str, Any] | float:
        """The body, or how many seconds to wait before it is tried again.

        Raises:
            Refused: That is the hub's answer.
            Unreachable: It was tried often enough.
        """
        self._count += 1
        if isinstance(answer, httpx2.TransportError):
            self._is_untouched = False
            return self._pause(0.0, answer)
        if answer.is_success:
            return _body(answer)
        if answer.status_code == httpx2.codes.UNAUTHORIZED and not self._refreshed:
            self._refreshed = True
            self._access.forget()
            return 0.0
        if _is_for_now(answer):
            asked, why = answer.headers.get("Retry-After", ""), refusal(_body(answer))
            self._is_untouched &= why.type == BUSY or not answer.is_server_error
            return self._pause(float(asked) if asked.isdigit() else 0.0, why)
        raise refusal(_body(answer))

    def _pause(self, asked: float, why: Exception) -> float:
        if self._count >= ATTEMPTS:
            if isinstance(why, Refused) and why.type and self._is_untouched:
                raise why
            raise Unreachable(
                f"{self._access.base} gave no usable answer in {self._count} attempts: {why}"
            ) from why
        return min(max(asked, PAUSE * (1 << (self._count - 1))), LONGEST_PAUSE)


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
        self._access = _Access(url, client_id, client_secret, token)
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
        attempts = _Attempts(self._access)
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
        self._access = _Access(url, client_id, client_secret, token)
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
        attempts = _Attempts(self._access)
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


def _is_for_now(answer: httpx2.Response) -> bool:
    """Whether what was refused may be granted to who asks again later."""
    return answer.status_code == httpx2.codes.TOO_MANY_REQUESTS or answer.is_server_error


def _body(answer: httpx2.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        if answer.is_success:
            raise Unreachable("What answered is no confirmhub.")
        # A hub that is asked by another name than its own says so in a line of plain text.
        said = answer.text.strip() if "text/plain" in answer.headers.get("Content-Type", "") else ""
        return {"title": said[:200] or f"The hub answered {answer.status_code} without a reason."}
    return body

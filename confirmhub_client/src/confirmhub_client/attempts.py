"""One call to the hub: the request with its token, and what an answer to it means. `hub` sends and waits."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

import httpx2

from confirmhub_client.errors import Refused, Unreachable, refusal
from confirmhub_client.steps import Call

SCOPES = "confirm:read confirm:request confirm:redeem"
ATTEMPTS = 6  # of one call
PAUSE = 0.5  # seconds before the second attempt, twice as long before each after it
LONGEST_PAUSE = 30.0  # seconds, also of those that the hub asks for
BUSY = "urn:confirmhub:busy"  # the one refusal of a 5xx that promises that nothing was done
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Access:
    """The service's token: fetched when there is none, and again shortly before it ends or when refused."""

    def __init__(
        self, url: str, *, client_id: str | None, client_secret: str | None, token: str | None
    ) -> None:
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


class Attempts:
    """How often one call was tried, and what its answers mean."""

    def __init__(self, access: Access) -> None:
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

"""A host that talks to whichever replica the balancer picks, and comes back when that one is gone."""

from __future__ import annotations

import ssl
from typing import Any, Self

import httpx2

from tests.bridge.hosts import MODERN, call_message

GONE = (502, 504)  # nginx: the replica closed the connection, or does not answer
URL = {"url": {}}


class Host:
    """One modern host, signed in, that can open pages."""

    def __init__(self, url: str, token: str, *, trust: ssl.SSLContext) -> None:
        self.url, self.token = url, token
        self.http = httpx2.Client(verify=trust, timeout=60)
        self.replicas: list[str] = []
        """Who answered each request."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def send(self, message: dict[str, Any]) -> httpx2.Response:
        headers = {
            "accept": "application/json, text/event-stream",
            "authorization": f"Bearer {self.token}",
            "mcp-protocol-version": MODERN,
            "mcp-method": message["method"],
            "mcp-name": message["params"]["name"],
        }
        answer = self.http.post(f"{self.url}/mcp", json=message, headers=headers)
        # After one that could not be reached, the next.
        self.replicas.append(answer.headers.get("x-replica", "").rpartition(", ")[2])
        return answer

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        """The result; where a replica was killed before it answered, of the same message sent again."""
        answer = self.send(message)
        while answer.status_code in GONE:
            answer = self.send(message)
        found: dict[str, Any] = answer.json()["result"]
        return found

    def ask(self, number: int) -> tuple[str, str]:
        """Have it ask to act; the state that it carries, and the page."""
        result = self.call(call_message("act", {"number": number}, elicitation=URL))
        assert result["resultType"] == "input_required", result
        return result["requestState"], result["inputRequests"]["page"]["params"]["url"]


def again(number: int, state: str) -> dict[str, Any]:
    """The same call as before, with the state that it was answered."""
    return call_message("act", {"number": number}, elicitation=URL, requestState=state)

"""A caller that sends what no published client would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx2

REFUND: dict[str, Any] = {
    "tool": "issue_refund",
    "arguments": {"payment_id": "payment_123", "amount": 4900, "exact": 0.1},
    "timeout": "10m",
}


@dataclass
class Raw:
    """Somebody with a token. What it returns are the answers, whatever they say."""

    base: str
    token: str | None

    def call(self, method: str, path: str, **options: Any) -> httpx2.Response:
        given = options.pop("headers", {})
        headers = list(given.items() if isinstance(given, dict) else given)
        if self.token is not None and "Authorization" not in dict(headers):
            headers.append(("Authorization", f"Bearer {self.token}"))
        # Over plain HTTP; the certificates, which would be read for each call anew, are not looked at.
        return httpx2.request(
            method, f"{self.base}/v1/{path}", headers=headers, timeout=40, verify=False, **options
        )

    def ask(self, *, key: str = "k1", **more: Any) -> httpx2.Response:
        return self.send(json.dumps(REFUND | more).encode(), key=key)

    def send(self, body: bytes, *, key: str = "k1") -> httpx2.Response:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        return self.call("POST", "requests", content=body, headers=headers)

    def get(self, id_: str, query: str = "") -> httpx2.Response:
        return self.call("GET", f"requests/{id_}{query}")

    def cancel(self, id_: str) -> httpx2.Response:
        return self.call("DELETE", f"requests/{id_}")

    def consume(self, id_: str, *, key: str = "c1", **options: Any) -> httpx2.Response:
        return self.call("POST", f"requests/{id_}/consume", headers={"Idempotency-Key": key}, **options)

    def report(self, id_: str, **outcome: Any) -> httpx2.Response:
        return self.call("POST", f"requests/{id_}/outcome", json=outcome)


def refusal(answer: httpx2.Response) -> tuple[int, str, str]:
    """Status, type and code of an answer that must be an error in the protocol's form."""
    assert answer.headers["Content-Type"] == "application/json", answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    error = answer.json()["error"]
    assert set(answer.json()) == {"error"}
    assert (
        {"type", "code", "message", "request_id"}
        <= set(error)
        <= {*("type", "code", "message", "request_id", "param")}
    )
    assert error["message"]
    assert error["request_id"] == answer.headers["X-Request-ID"]
    return answer.status_code, error["type"], error["code"]

"""Callers of the served API, over real HTTP: a person's program, and a service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx2

from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.oauth import services

AUDIENCE = "https://payments.example/api"
TRANSFER = {"action": "payments.transfer", "arguments": {"cents": 1250, "to": "rent"}}


@dataclass
class Caller:
    """Somebody with a token. What it returns are the answers, whatever they say."""

    url: str
    token: str | None
    headers: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, **options: Any) -> httpx2.Response:
        headers = {**self.headers, **options.pop("headers", {})}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return httpx2.request(method, f"{self.url}/api/v1/{path}", headers=headers, timeout=70, **options)

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.call("GET", path, **options)

    def post(self, path: str, body: object = None, **options: Any) -> httpx2.Response:
        return self.call("POST", path, **({"json": body} if body is not None else {}), **options)

    def ask(self, **more: Any) -> httpx2.Response:
        return self.post("confirmations", TRANSFER | more)

    def redeem(self, id_: str, *, key: str = "k", **more: Any) -> httpx2.Response:
        return self.post(f"confirmations/{id_}/redeem", TRANSFER | {"redemption_key": key} | more)


def make_service(url: str, *, name: str = "Payments", audience: str = AUDIENCE) -> Caller:
    """A service that an operator has made, with a token of its own."""
    made, secret = services.create(name=name, audience=audience)
    form = {"grant_type": "client_credentials", "scope": "confirm:read confirm:request confirm:redeem"}
    answer = httpx2.post(f"{url}/oauth/token", data=form, auth=(made.client_id, secret))
    return Caller(url, answer.json()["access_token"])


def action(*, audience: str) -> Action:
    return Action(audience=audience, name="payments.transfer", arguments=TRANSFER["arguments"])


def row(answer: httpx2.Response) -> Confirmation:
    return Confirmation.objects.get(id=answer.json()["id"])


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["Content-Type"] == "application/problem+json", answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["type"].removeprefix("urn:confirmhub:")

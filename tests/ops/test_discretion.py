"""Nothing secret, and no argument, gets into the log: a whole walk with values that sing there."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Hook, Notice
from confirmhub.notifications import delivery
from confirmhub.notifications.channels.webhook import new_secret
from confirmhub.oauth import services
from tests.api.serving import AUDIENCE, Caller
from tests.bridge.hosts import ALL, call_message, post
from tests.factories import make_pending, make_user, principal_for
from tests.notifications.receiver import Receiver, answer, receiving
from tests.notifications.smtp import Sink
from tests.notifications.support import chooses, work
from tests.ops.conftest import Log
from tests.ops.service import free_port

BACK = "http://127.0.0.1:33418/callback"
PASSWORD = "canary-password"
VERIFIER = "canary-verifier-" + "v" * 40
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class Walk:
    """Somebody who uses all of it, and knows what of it is secret."""

    def __init__(self, url: str, browser: httpx2.Client) -> None:
        self.url = url
        self.browser = browser
        self.secrets: set[str] = set()

    def knows(self, *secrets: str) -> None:
        assert all(len(secret) >= 8 for secret in secrets)
        self.secrets |= set(secrets)

    def submits(self, page: str, **fields: str) -> httpx2.Response:
        """Send the form of this page, with what it has hidden in it."""
        hidden = dict(HIDDEN.findall(self.browser.get(page).text))
        self.knows(hidden["csrfmiddlewaretoken"])
        answered = self.browser.post(page, data=hidden | fields, headers={"Origin": self.url})
        self.knows(*self.browser.cookies.values())
        return answered

    def signs_in(self) -> None:
        self.submits("/sign-in", username="alice", password="canary-mistyped")
        assert self.submits("/sign-in", username="alice", password=PASSWORD).status_code == 302

    def lets_a_host_act(self) -> str:
        """An access token, by way of registration, consent, code and a refresh; and a few refusals."""
        fields = {"client_name": "canary-name", "redirect_uris": [BACK]}
        client_id = self.browser.post("/oauth/register", json=fields).json()["client_id"]
        challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": BACK,
            "scope": ALL,
            "state": "canary-state",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": f"{self.url}/mcp",
        }
        self.browser.get("/oauth/authorize", params=query | {"scope": "canary-scope"})
        allowed = self.submits(f"/oauth/authorize?{httpx2.QueryParams(query)}", verdict="allow")
        [code] = parse_qs(urlsplit(allowed.headers["Location"]).query)["code"]
        form = {"client_id": client_id, "redirect_uri": BACK, "resource": query["resource"]}
        exchange = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        self.browser.post("/oauth/token", data=form | exchange | {"code_verifier": "canary-other" * 5})
        first = self.browser.post("/oauth/token", data=form | exchange).json()
        refresh = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]}
        tokens = self.browser.post("/oauth/token", data=form | refresh).json()
        self.knows(code, challenge)
        self.knows(*(each[name] for each in (first, tokens) for name in ("access_token", "refresh_token")))
        self.browser.post(
            "/oauth/token", data=form | {"grant_type": "refresh_token", "refresh_token": "canary-x"}
        )
        return str(tokens["access_token"])

    def lets_a_service_ask(self) -> None:
        """By its secret; where it wants to hear what comes of it, nobody answers."""
        made, secret = services.create(name="Payments", audience=AUDIENCE)
        form = {"grant_type": "client_credentials", "scope": "confirm:read confirm:request confirm:redeem"}
        self.browser.post("/oauth/token", data=form, auth=(made.client_id, "canary-secret"))
        answered = self.browser.post("/oauth/token", data=form, auth=(made.client_id, secret))
        token = answered.json()["access_token"]
        self.knows(secret, token, base64.b64encode(f"{made.client_id}:{secret}".encode()).decode())
        hook = Hook.objects.create(
            client_id=made.client_id, url="https://hooks.example/canary", secrets=new_secret()
        )
        self.knows(hook.secrets)
        service = Caller(self.url, token)
        what = {"action": "payments.transfer", "arguments": {"to": "canary-account"}}
        assert service.ask(**what).status_code == 403
        asked = service.ask(on_behalf_of="alice", **what).json()
        self.decides(asked["id"], "deny")
        assert service.redeem(asked["id"], key="canary-key", **what).status_code == 409

    def decides(self, id_: str, verdict: str) -> None:
        page = self.submits(f"/confirm/{id_}", verdict=verdict, reason="canary-reason")
        assert page.status_code == 302, page.text

    def asks_by_the_api(self, token: str) -> None:
        caller = Caller(self.url, token)
        what = {"action": "payments.transfer", "arguments": {"to": "canary-account"}}
        asked = caller.post(
            "confirmations", what | {"summary": "canary-summary"}, headers={"Idempotency-Key": "canary-same"}
        ).json()
        caller.redeem(asked["id"], key="canary-key", **what)  # nobody has decided
        self.decides(asked["id"], "approve")
        caller.redeem(asked["id"], key="canary-key", arguments={"to": "canary-thief"})
        redeemed = caller.redeem(asked["id"], key="canary-key", **what)
        assert redeemed.status_code == 200, redeemed.text
        assert caller.redeem(asked["id"], key="canary-again", **what).status_code == 409
        outcome = {"redemption_key": "canary-key", "result": "failed", "detail": "canary-detail"}
        assert caller.post(f"confirmations/{asked['id']}/outcome", outcome).status_code == 200
        caller.ask(arguments=[], action="canary-action")
        caller.post(
            "confirmations", headers={"Content-Type": "application/json"}, content=b'{"canary": canary}'
        )
        Caller(self.url, "canary-token").ask(**what)
        httpx2.get(f"{self.url}/api/v1/confirmations/1?token=canary-query")

    def asks_by_the_bridge(self, token: str, file: Path) -> None:
        def call(arguments: dict[str, Any], **params: Any) -> dict[str, Any]:
            message = call_message("delete_file", arguments, elicitation={"url": {}}, **params)
            found: dict[str, Any] = post(self.url, message, token=token).json()
            return found

        state = call({"path": str(file)})["result"]["requestState"]
        self.knows(state)
        asked = Confirmation.objects.get(action="delete_file")
        self.decides(str(asked.id), "approve")
        [done] = call({"path": str(file)}, requestState=state)["result"]["content"]
        assert done["text"].startswith("Deleted")
        call({"path": str(file)}, requestState=state)
        call({"path": str(file)}, requestState=f"{state[:-4]}AAAA")
        call({"path": str(file.with_name("canary-other"))}, requestState=state)
        call({"path": ["canary-type"], "canary-more": 1})
        post(self.url, {"method": "canary"}, token=token)
        post(self.url, b'{"canary', token=token)
        post(self.url, call_message("canary_tool", {}), token=token)
        post(self.url, call_message("list_files", {}), token="canary-token")

    def runs_into_a_broken_database(self, token: str) -> None:
        with forbidden("payments.broken"):
            for arguments in ({"to": "canary-account"}, {"to": "canary\n\nline"}):
                answered = Caller(self.url, token).ask(action="payments.broken", arguments=arguments)
                assert answered.status_code >= 500, answered.text
            message = call_message(
                "request_confirmation",
                {"action": "payments.broken", "arguments": {"to": "canary"}, "summary": "canary"},
            )
            assert post(self.url, message, token=token).json()["result"]["isError"]


@contextmanager
def forbidden(action: str) -> Iterator[None]:
    """As if the product tried to store what the database refuses."""
    table = "ALTER TABLE confirmations_confirmation"
    with connection.cursor() as cursor:
        cursor.execute(f"{table} ADD CONSTRAINT of_the_test CHECK (action <> %s)", [action])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"{table} DROP CONSTRAINT of_the_test")


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.WEBHOOKS_TO_LOOPBACK = True
    delivery.breaker.clear()
    with receiving(None, None) as found:
        yield found


def test_the_log_of_a_whole_walk_holds_no_secret_and_no_argument(
    url: str, log: Log, settings: Settings, receiver: Receiver, tmp_path: Path
) -> None:
    alice = make_user("alice")
    alice.set_password(PASSWORD)
    alice.save()
    settings.FILE_ROOTS = [tmp_path]
    settings.METRICS_TOKEN = "canary-metrics" * 3
    settings.CELERY_BROKER_URL = f"redis://canary-user:canary-password@127.0.0.1:{free_port()}/0"
    file = tmp_path / "canary-report.txt"
    file.write_text("canary-content")
    with httpx2.Client(base_url=url, timeout=60) as browser:
        walk = Walk(url, browser)
        walk.knows(settings.SECRET_KEY, settings.TOKEN_KEY, *settings.SEALING_KEYS, *settings.RECEIPT_KEYS)

        walk.signs_in()
        token = walk.lets_a_host_act()
        walk.lets_a_service_ask()
        walk.asks_by_the_api(token)
        walk.asks_by_the_bridge(token, file)
        walk.runs_into_a_broken_database(token)
        for path in ("/metrics", "/healthz"):
            httpx2.get(f"{url}{path}", headers={"Authorization": f"Bearer {settings.METRICS_TOKEN}"})
            httpx2.get(f"{url}{path}", headers={"Authorization": "Bearer canary-other"})
        sends_what_is_due(walk, alice, receiver, settings)

    text = "\n".join(log.lines)
    loggers = {json.loads(line)["logger"] for line in log.lines}
    assert [secret for secret in walk.secrets if secret in text] == []
    assert [line for line in log.lines if "canary" in line.lower()] == []
    assert loggers >= {
        "confirmhub.oauth.validator",
        "confirmhub.notifications.delivery",
        "confirmhub.ops.health",
    }
    assert len(log.lines) > 50


def sends_what_is_due(walk: Walk, person: User, receiver: Receiver, settings: Settings) -> None:
    """Over channels that fail, then by mail: to a server that takes no password, and to one that does."""
    for path, status in (("/canary-slack", 404), ("/canary-hook", 500)):
        receiver.answers[path] = answer(status)
    chosen = [
        chooses(person, "slack", receiver.url("/canary-slack")),
        chooses(person, "webhook", receiver.url("/canary-hook")),
        chooses(person, "email"),
    ]
    walk.knows(*(destination.secrets for destination in chosen))
    action = Action(audience=AUDIENCE, name="payments.transfer", arguments={"to": "canary-account"})
    make_pending(principal_for(person), action=action, summary="canary-summary")
    settings.NOTICE_ARGUMENTS = True
    with Sink() as sink:
        server = {"host": "127.0.0.1", "port": sink.port, "timeout": 5}
        for options in ({"username": "canary-user", "password": "canary-password"}, {}):
            settings.MAILERS = {"default": {"OPTIONS": server | options}}
            Notice.objects.filter(sent_at=None).update(due_at=Now(), given_up_at=None, attempts=0)
            work(receiver)
        assert "canary-account" in str(sink.next().get_body(("plain",)))

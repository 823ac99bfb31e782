"""The client package against a served hub: one flow, sync and async, and every way in which it ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations import proof
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status, Verdict
from confirmhub.oauth.models import AccessToken
from confirmhub_client import (
    AlreadyRedeemed,
    AsyncHub,
    Denied,
    Expired,
    Hub,
    Refused,
    Replayed,
    Unreachable,
    attempts,
    receipts,
)
from tests.client.conftest import Credentials, Decider
from tests.factories import decide

ARGUMENTS = {"to": "rent", "cents": 1250}


def ask(hub: Hub) -> Any:
    return hub.confirm("payments.transfer", ARGUMENTS, on_behalf_of="alice", question="Pay the rent?")


def test_the_block_runs_with_a_spent_yes_and_its_outcome_is_reported(hub: Hub, decider: Decider) -> None:
    decider()

    with ask(hub) as receipt:
        row = Confirmation.objects.get(id=receipt.confirmation_id)
        assert (row.status, row.arguments) == (
            Status.REDEEMED,
            json.dumps(ARGUMENTS, sort_keys=True, separators=(",", ":")),
        )
        assert not hasattr(row, "outcome")

    row = Confirmation.objects.get(id=receipt.confirmation_id)
    assert row.outcome.result == "succeeded"


def test_a_block_that_raises_is_reported_as_failed_and_raises_on(hub: Hub, decider: Decider) -> None:
    decider()

    with pytest.raises(ZeroDivisionError), ask(hub):
        _ = 1 / 0

    row = Confirmation.objects.get()
    assert (row.outcome.result, row.outcome.detail) == ("failed", "ZeroDivisionError")


def test_a_no_runs_nothing_and_says_why(hub: Hub, decider: Decider) -> None:
    decider(Verdict.DENY, reason="Not this month")

    with pytest.raises(Denied) as refusal, ask(hub):
        pytest.fail("it ran")

    assert refusal.value.reason == "Not this month"


def test_who_stops_waiting_takes_the_question_back(hub: Hub, alice: User) -> None:
    with (
        pytest.raises(Expired),
        hub.confirm("payments.transfer", ARGUMENTS, on_behalf_of="alice", within=0.5),
    ):
        pytest.fail("it ran")

    assert Confirmation.objects.get().status == Status.CANCELLED


def test_the_async_hub_does_the_same(
    url: str, credentials: Credentials, decider: Decider, alice: User
) -> None:
    decider()

    async def run() -> str:
        async with AsyncHub(url, **credentials) as hub:
            async with hub.confirm("payments.transfer", ARGUMENTS, on_behalf_of="alice") as receipt:
                pass
            found = await hub.get(receipt.confirmation_id)
            assert (await hub.wait(found.id)).status == "redeemed"
            with pytest.raises(AlreadyRedeemed):
                await hub.redeem(found.id, "payments.transfer", ARGUMENTS)
            asked = await hub.ask("other", {}, on_behalf_of="alice")
            assert (await hub.cancel(asked.id)).status == "cancelled"
            assert await hub.receipt(found.id)
            return found.status

    assert asyncio.run(run()) == "redeemed"
    assert Confirmation.objects.filter(outcome__result="succeeded").count() == 1


def test_an_async_block_that_is_cancelled_is_reported_as_failed(
    url: str, credentials: Credentials, decider: Decider
) -> None:
    decider()

    async def run() -> None:
        hub = AsyncHub(url, **credentials)
        began = asyncio.Event()

        async def act() -> None:
            async with hub.confirm("payments.transfer", ARGUMENTS, on_behalf_of="alice"):
                began.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(act())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await hub.close()

    asyncio.run(run())
    assert Confirmation.objects.get().outcome.detail == "CancelledError"


def test_who_was_killed_after_the_yes_was_spent_runs_nothing_twice(
    url: str, credentials: Credentials, hub: Hub, decider: Decider
) -> None:
    decider()
    program = f"""
        import os, signal
        from confirmhub_client import Hub
        hub = Hub({url!r}, **{credentials!r})
        keys = {{"idempotency_key": "job-7", "redemption_key": "job-7"}}
        with hub.confirm("payments.transfer", {ARGUMENTS!r}, on_behalf_of="alice", **keys) as receipt:
            print(receipt.redeemed_at.isoformat(), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={"PYTHONPATH": "confirmhub_client/src"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr
    row = Confirmation.objects.get()
    assert (row.status, hasattr(row, "outcome")) == (Status.REDEEMED, False)

    with (
        pytest.raises(Replayed) as replayed,
        hub.confirm(
            "payments.transfer",
            ARGUMENTS,
            on_behalf_of="alice",
            idempotency_key="job-7",
            redemption_key="job-7",
        ),
    ):
        pytest.fail("it ran twice")

    receipt = replayed.value.receipt
    assert (receipt.confirmation_id, receipt.result, receipt.replayed) == (str(row.id), None, True)
    assert receipt.redeemed_at.isoformat() == killed.stdout.strip()
    hub.report(receipt, result="succeeded", detail="Found in the bank's list.")
    assert Confirmation.objects.get().outcome.result == "succeeded"


def test_a_receipt_is_verified_offline(hub: Hub, url: str, decider: Decider) -> None:
    decider()
    with ask(hub) as spent:
        pass
    jwks = httpx2.get(f"{url}/api/v1/receipt-keys").json()
    signed = hub.receipt(spent.confirmation_id)

    found = receipts.verify(signed, jwks, issuer=url, audience="https://payments.example/api")

    assert found == proof.verify(receipt=signed, jwks=jwks)
    for wrong in ({"issuer": "https://other.example"}, {"audience": "https://other.example"}):
        with pytest.raises(receipts.NotVerified):
            receipts.verify(signed, jwks, **wrong)
    for text in (signed[:-4] + "AAAA", "", "a.b.c", signed + "x"):
        with pytest.raises(receipts.NotVerified):
            receipts.verify(text, jwks)
    with pytest.raises(receipts.NotVerified):
        receipts.verify(signed, {"keys": []})


def test_a_token_that_was_taken_away_is_fetched_anew(hub: Hub, alice: User) -> None:
    hub.ask("a", {}, on_behalf_of="alice")
    AccessToken.objects.all().delete()

    assert hub.ask("b", {}, on_behalf_of="alice").status == "pending"


def test_a_wrong_secret_is_said_at_once(url: str, credentials: Credentials) -> None:
    with (
        Hub(url, **credentials | {"client_secret": "wrong"}) as hub,
        pytest.raises(Refused, match="gave no token"),
    ):
        hub.ask("a", {})


def test_a_mistake_is_named(hub: Hub) -> None:
    with pytest.raises(Refused) as refusal:
        hub.ask("1 a", {})
    assert refusal.value.type == "urn:confirmhub:invalid_action"
    with pytest.raises(Refused, match="summary"):
        hub.ask("a", {}, summary="x" * 1001)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("http://hub.example", {"token": "t"}),
        ("ftp://localhost", {"token": "t"}),
        ("https://hub.example", {}),
        ("https://hub.example", {"client_id": "a"}),
        ("https://hub.example", {"client_id": "a", "client_secret": "b", "token": "t"}),
    ],
)
def test_what_would_not_be_safe_or_whole_is_refused_at_once(url: str, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"https|client_id"):
        Hub(url, **options)


LOST: tuple[int, dict[str, str], bytes] = (0, {}, b"")


@contextmanager
def answering(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers, one after the other, and remembers what was asked."""
    left, asked = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.headers.get("Idempotency-Key", ""))
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, body = left.pop(0) if left else LOST
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


MADE = json.dumps({"id": "i", "status": "pending", "page": "p", "decide_by": "2030-01-01T00:00:00Z"}).encode()


def test_what_was_lost_on_the_way_is_sent_again_with_the_same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "PAUSE", 0.01)
    lost = ((503, {"Retry-After": "0"}, b"no json"), (502, {}, b""))
    with answering(*lost, (201, {}, MADE)) as (url, asked), Hub(url, token="t") as hub:
        assert hub.ask("a", {}).id == "i"

    assert len(asked) == 3
    assert len(set(asked)) == 1


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>"])
def test_what_is_no_hub_is_said(body: bytes) -> None:
    with answering((200, {}, body)) as (url, _), Hub(url, token="t") as hub, pytest.raises(Unreachable):
        hub.ask("a", {})


def test_a_hub_that_is_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "PAUSE", 0.01)
    with answering() as (url, asked), Hub(url, token="t") as hub, pytest.raises(Unreachable):
        hub.ask("a", {})

    assert len(asked) == attempts.ATTEMPTS


BUSY = (429, {"Retry-After": "0"}, b'{"error": "temporarily_unavailable", "error_description": "Too many."}')
TOKEN = (200, {}, b'{"access_token": "t", "expires_in": 3600}')


def test_a_hub_that_gives_no_token_at_present_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "PAUSE", 0.01)
    answers = (BUSY, (503, {}, b""), TOKEN, (201, {}, MADE))
    with answering(*answers) as (url, asked), Hub(url, client_id="a", client_secret="b") as hub:
        assert hub.ask("a", {}).id == "i"

    assert len(asked) == 4


def test_a_hub_that_goes_on_giving_no_token_does_not_blame_the_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "PAUSE", 0.01)

    async def ask(url: str) -> None:
        async with AsyncHub(url, client_id="a", client_secret="b") as hub:
            await hub.ask("a", {})

    with answering(*[BUSY] * attempts.ATTEMPTS) as (url, _), pytest.raises(Unreachable, match="Too many"):
        asyncio.run(ask(url))


def test_a_decision_that_came_before_the_wait_is_found(hub: Hub, alice: User) -> None:
    asked = hub.ask("a", {}, on_behalf_of="alice")
    decide(Confirmation.objects.get(id=asked.id), alice)

    assert hub.wait(asked.id).status == "approved"
    assert hub.get(asked.id).page == asked.page

"""Waiting and redeeming over HTTP: many at once, one winner, and the refusals of all other routes."""

from __future__ import annotations

import asyncio
import socket
import time
from urllib.parse import urlsplit

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db import connection

from confirmhub.api import hot
from confirmhub.confirmations import ledger
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.roles import OPERATORS
from confirmhub.oauth.models import AccessToken
from tests.api.serving import TRANSFER, Caller, refusal, row
from tests.factories import decide, make_user
from tests.notifications.support import eventually


def settle(asked: httpx2.Response, approver: User) -> None:
    try:
        decide(row(asked), approver)
    finally:
        connection.close()  # of this thread


def test_a_wait_ends_with_the_decision_and_not_with_the_time(program: Caller, alice: User) -> None:
    asked = program.ask()
    path = f"{program.url}/api/v1/confirmations/{asked.json()['id']}/wait?timeout=50"

    async def wait() -> httpx2.Response:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {program.token}"}) as client:
            waiting = asyncio.create_task(client.get(path, timeout=60))
            await asyncio.to_thread(settle, asked, alice)
            return await waiting

    began = time.monotonic()
    answer = asyncio.run(wait())

    assert answer.json()["status"] == "approved"
    assert time.monotonic() - began < 30
    assert answer.headers["ETag"] == program.get(f"confirmations/{asked.json()['id']}").headers["ETag"]


def test_a_wait_tells_nothing_to_who_was_shut_out_meanwhile(program: Caller, alice: User) -> None:
    asked = program.ask()
    path = f"{program.url}/api/v1/confirmations/{asked.json()['id']}/wait?timeout=50"

    def shut_out_and_settle() -> None:
        eventually(lambda: hot._running().places.taken.total() > 0)
        AccessToken.objects.all().delete()
        settle(asked, alice)

    async def wait() -> httpx2.Response:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {program.token}"}) as client:
            waiting = asyncio.create_task(client.get(path, timeout=60))
            await asyncio.to_thread(shut_out_and_settle)
            return await waiting

    assert refusal(asyncio.run(wait())) == (401, "invalid_token")


def test_a_wait_that_nobody_ends_says_that_it_waits(program: Caller) -> None:
    id_ = program.ask().json()["id"]

    answer = program.get(f"confirmations/{id_}/wait?timeout=1")

    assert (answer.status_code, answer.json()["status"]) == (200, "pending")


def test_a_wait_of_another_length_is_refused(program: Caller) -> None:
    id_ = program.ask().json()["id"]

    for query in ("timeout=56", "timeout=-1", "timeout=x", "patience=1", "timeout=1&timeout=2"):
        answer = program.get(f"confirmations/{id_}/wait?{query}")
        assert refusal(answer) == (400, "invalid_request"), query


def test_more_than_a_process_holds_are_told_to_come_back(
    program: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot, "MOST_WAITING", 0)
    answer = program.get(f"confirmations/{program.ask().json()['id']}/wait?timeout=1")

    assert refusal(answer) == (503, "busy")
    assert answer.headers["Retry-After"] == "5"


def test_who_waits_in_as_many_requests_as_they_may_is_told_so_and_others_wait(
    program: Caller, service: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot, "MOST_OF_ONE", 1)
    id_ = program.ask().json()["id"]
    theirs = service.ask(on_behalf_of="alice").json()["id"]
    at = urlsplit(program.url)

    with socket.create_connection(("127.0.0.1", at.port or 80), timeout=20) as opened:
        line = f"GET /api/v1/confirmations/{id_}/wait?timeout=55 HTTP/1.1\r\nHost: {at.netloc}\r\n"
        opened.sendall(f"{line}Authorization: Bearer {program.token}\r\n\r\n".encode())
        eventually(lambda: hot._running().places.taken.total() == 1)
        second = program.get(f"confirmations/{id_}/wait?timeout=1")
        other = service.get(f"confirmations/{theirs}/wait?timeout=0")
    eventually(lambda: not hot._running().places.taken)

    assert refusal(second) == (429, "too_many_requests")
    assert second.headers["Retry-After"] == "5"
    assert other.status_code == 200
    assert program.get(f"confirmations/{id_}/wait?timeout=0").status_code == 200


def test_of_fifty_redemptions_at_once_one_is_made(program: Caller, alice: User) -> None:
    asked = program.ask()
    decide(row(asked), alice)
    path = f"{program.url}/api/v1/confirmations/{asked.json()['id']}/redeem"

    async def race() -> list[httpx2.Response]:
        headers = {"Authorization": f"Bearer {program.token}"}
        limits = httpx2.Limits(max_connections=50)
        async with httpx2.AsyncClient(headers=headers, limits=limits, timeout=60) as client:
            posts = (client.post(path, json=TRANSFER | {"redemption_key": f"k{n}"}) for n in range(50))
            return await asyncio.gather(*posts)

    answers = asyncio.run(race())

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 49
    assert {refusal(answer) for answer in answers if answer.status_code != 200} == {(409, "already_redeemed")}


def test_each_refusal_is_told_apart(program: Caller, alice: User) -> None:
    asked = program.ask()
    id_ = asked.json()["id"]
    pending = program.redeem(id_)
    assert refusal(pending) == (409, "pending")
    assert pending.headers["Retry-After"]
    decide(row(asked), alice)

    assert refusal(program.redeem(id_, arguments={"cents": 1, "to": "me"})) == (409, "action_differs")
    assert refusal(program.redeem(id_, action="other")) == (409, "action_differs")
    assert refusal(program.redeem(id_, key="a b")) == (400, "invalid_action")
    assert refusal(program.redeem(id_, amount=1)) == (400, "invalid_request")
    assert refusal(program.call("GET", f"confirmations/{id_}/redeem")) == (405, "method_not_allowed")
    assert Confirmation.objects.get(id=id_).status == "approved"


def test_a_stop_is_told_with_its_reason(program: Caller, alice: User) -> None:
    operator = make_user("olga")
    from django.contrib.auth.models import Group

    operator.groups.add(Group.objects.get(name=OPERATORS))
    asked = program.ask()
    decide(row(asked), alice)
    ledger.halt(operator=operator, reason="Look first")

    answer = program.redeem(asked.json()["id"])

    assert refusal(answer) == (409, "halted")
    assert answer.json()["reason"] == "Look first"


def test_a_token_that_was_revoked_is_refused_at_the_next_request(program: Caller, alice: User) -> None:
    from confirmhub.oauth.models import AccessToken

    asked = program.ask()
    decide(row(asked), alice)
    AccessToken.objects.all().delete()

    assert refusal(program.redeem(asked.json()["id"])) == (401, "invalid_token")


def test_a_body_that_is_too_large_is_refused(program: Caller) -> None:
    id_ = program.ask().json()["id"]

    answer = program.redeem(id_, arguments={"x": "a" * 70_000})

    assert answer.status_code == 413

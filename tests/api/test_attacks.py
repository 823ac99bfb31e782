"""What would make a yes move more than it was given for: races, keys, others' rows, odd requests, crowds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import threading
from urllib.parse import urlsplit

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db import connection

from confirmhub.api import hot
from confirmhub.api.document import document
from confirmhub.confirmations.models import Confirmation, Event
from confirmhub.oauth import services
from mcp_bridge import body
from tests.api.serving import AUDIENCE, TRANSFER, Caller, make_service, refusal, row
from tests.bridge.hosts import make_token
from tests.factories import decide, make_user

# What Django's middleware does not add to `hot`, and what is of the answer itself.
OF_THE_ANSWER = {"date", "etag", "content-length", "content-type", "vary", "allow", "x-request-id"}


def approved(caller: Caller, alice: User, **more: object) -> str:
    asked = caller.ask(**more)
    assert asked.status_code == 201, asked.text
    decide(row(asked), alice)
    return str(asked.json()["id"])


def at_once(caller: Caller, posts: list[tuple[str, dict[str, object]]]) -> list[httpx2.Response]:
    async def run() -> list[httpx2.Response]:
        headers = {"Authorization": f"Bearer {caller.token}"}
        limits = httpx2.Limits(max_connections=len(posts))
        async with httpx2.AsyncClient(headers=headers, limits=limits, timeout=60) as client:
            calls = (client.post(f"{caller.url}/api/v1/{path}", json=sent) for path, sent in posts)
            return await asyncio.gather(*calls)

    return asyncio.run(run())


def test_forty_tries_of_one_key_are_one_redemption(program: Caller, alice: User) -> None:
    id_ = approved(program, alice)

    answers = at_once(program, [(f"confirmations/{id_}/redeem", TRANSFER | {"redemption_key": "k"})] * 40)

    assert {answer.status_code for answer in answers} == {200}
    assert [answer.json()["replayed"] for answer in answers].count(False) == 1
    assert len({answer.json()["redeemed_at"] for answer in answers}) == 1
    assert Event.objects.filter(confirmation_id=id_, kind="redeemed").count() == 1


def test_a_key_is_no_key_to_another_action_or_another_confirmation(program: Caller, alice: User) -> None:
    id_, other = approved(program, alice), approved(program, alice, action="payments.refund")
    assert program.redeem(id_).status_code == 200

    dearer = program.redeem(id_, arguments={"cents": 125_000, "to": "rent"})
    assert refusal(dearer) == (409, "action_differs")
    assert refusal(program.redeem(other)) == (409, "action_differs")
    assert Confirmation.objects.get(id=other).status == "approved"


def test_a_question_that_is_taken_back_while_it_is_redeemed_is_one_or_the_other(
    program: Caller, alice: User
) -> None:
    for number in range(5):
        asked = program.ask(action=f"a{number}")
        decide(row(asked), alice)
        id_ = asked.json()["id"]
        about = TRANSFER | {"action": f"a{number}", "redemption_key": "k"}
        answers = at_once(
            program, [(f"confirmations/{id_}/redeem", about), (f"confirmations/{id_}/cancel", {})]
        )
        statuses = [answer.status_code for answer in answers]
        assert statuses == [200, 409], [answer.text for answer in answers]


def test_a_persons_program_and_a_service_that_asked_for_them_do_not_share(
    url: str, program: Caller, service: Caller, alice: User
) -> None:
    theirs = approved(service, alice, on_behalf_of="alice")
    hers = approved(program, alice)

    for caller, id_ in ((program, theirs), (service, hers), (make_service(url, name="Other"), theirs)):
        assert refusal(caller.redeem(id_)) == (404, "not_found")
        assert refusal(caller.get(f"confirmations/{id_}/wait?timeout=0")) == (404, "not_found")
    assert set(Confirmation.objects.values_list("status", flat=True)) == {"approved"}


def test_a_service_with_a_persons_name_is_not_that_person(url: str, alice: User) -> None:
    service = make_service(url, name="alice")

    assert refusal(service.ask()) == (403, "policy_denies")
    assert service.get("confirmations").json()["confirmations"] == []


def test_a_person_with_a_services_name_is_not_that_service(url: str, alice: User) -> None:
    made, _ = services.create(name="Payments", audience=AUDIENCE)
    double = make_user(f"client:{made.client_id}")
    caller = Caller(url, make_token(double, resource=f"{url}/mcp"))

    asked = caller.ask()

    assert row(asked).requester_subject == str(double.pk)


@pytest.mark.parametrize("spelling", ["{upper}", "{plain}", "urn:uuid:{id}", "%7B{id}%7D", "{id}%20"])
def test_a_confirmation_has_one_address(program: Caller, alice: User, spelling: str) -> None:
    id_ = approved(program, alice)
    other = spelling.format(id=id_, upper=id_.upper(), plain=id_.replace("-", ""))

    assert program.redeem(other).status_code == 404
    assert program.get(f"confirmations/{other}").status_code == 404
    assert program.get(f"confirmations/{other}/wait?timeout=0").status_code == 404


def test_the_quick_routes_carry_what_all_others_carry(program: Caller, alice: User) -> None:
    id_ = approved(program, alice)
    slow = program.get(f"confirmations/{id_}")
    for quick in (
        program.get(f"confirmations/{id_}/wait?timeout=0"),
        program.redeem(id_),
        program.redeem(id_, key="other"),
        program.get(f"confirmations/{id_}/redeem"),
    ):
        for name, value in slow.headers.items():
            if name not in OF_THE_ANSWER:
                assert quick.headers[name] == value, name


def raw(url: str, *lines: str, sent: bytes = b"") -> bytes:
    """The answer to a request that no client library would send."""
    at = urlsplit(url)
    with socket.create_connection(("127.0.0.1", at.port or 80), timeout=20) as opened:
        opened.sendall(
            "\r\n".join([*lines, f"Host: {at.netloc}", "Connection: close", "", ""]).encode() + sent
        )
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while part := opened.recv(65_536):
                received += part
    return received


def test_a_request_that_two_readers_would_read_differently_is_refused(program: Caller, alice: User) -> None:
    id_ = approved(program, alice)
    text = json.dumps(TRANSFER | {"redemption_key": "k"}).encode()
    line = f"POST /api/v1/confirmations/{id_}/redeem HTTP/1.1"
    bearer, length = f"Authorization: Bearer {program.token}", f"Content-Length: {len(text)}"
    kind = "Content-Type: application/json"
    odd = [
        [line, bearer, kind, length, "Content-Length: 2"],
        [line, bearer, kind, length, "Transfer-Encoding: chunked"],
        [line, bearer, kind, "Content-Length: +10"],
        [line, bearer, kind, "Transfer-Encoding: x, chunked"],
        [line, bearer, bearer, kind, length],
        [line, bearer, "Authorization: Basic eA==", kind, length],
        [line, bearer, kind, kind, length],
        [line, bearer, "Content-Type: text/plain", length],
        [line, bearer, length],
        [line, bearer, "Content-Type: application/json; charset=utf-16", length],
        [line, f" {bearer}", kind, length],
        [line, f"authorization_: Bearer {program.token}", kind, length],
        [line.replace("POST", "GET"), bearer, kind, length],
    ]

    for lines in odd:
        answer = raw(program.url, *lines, sent=text)
        assert answer[9:10] in (b"4", b""), (lines, answer)  # refused, or the line is cut
    assert Confirmation.objects.get(id=id_).status == "approved"
    assert raw(program.url, line, bearer, kind, length, sent=text)[9:12] == b"200"


def test_a_slow_body_is_refused_in_the_form_of_all_refusals(
    program: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "READ_WITHIN", 0.1)
    id_ = program.ask().json()["id"]

    at = urlsplit(program.url)
    with socket.create_connection(("127.0.0.1", at.port or 80), timeout=20) as opened:
        line = f"POST /api/v1/confirmations/{id_}/redeem HTTP/1.1"
        opened.sendall(f"{line}\r\nHost: {at.netloc}\r\nContent-Length: 10\r\n\r\na".encode())
        answer = opened.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in answer
    assert b'"urn:confirmhub:too_slow"' in answer


def test_what_is_refused_at_the_door_is_a_problem_too(program: Caller) -> None:
    wrong = program.get("confirmations", headers={"Host": "evil.example"})
    fat = program.get("confirmations", headers={f"x-{number}": "x" for number in range(120)})
    large = program.post("confirmations", {"x": "a" * 70_000})
    odd = program.call("POST", "confirmations", content=b"{}", headers={"Content-Type": "a/b; charset=hex"})

    assert refusal(wrong) == (400, "wrong_host")
    assert refusal(fat) == (431, "headers_too_large")
    assert refusal(large) == (413, "too_large")
    assert refusal(odd) == (415, "unsupported_media_type")


def test_every_other_address_is_a_problem_too(program: Caller) -> None:
    for path in ("", "confirmations/", "confirmations/a/redeem/", "nothing", "a%00b"):
        answer = program.get(path)
        assert refusal(answer) == (404, "no_such_path"), path
        assert answer.json()["title"] == "There is nothing at this address."
        for known in document()["paths"]:
            begins, _, ends = known.partition("{confirmation_id}")
            assert {begins.rstrip("/"), ends} <= set(re.findall(r"[/\w-]*", answer.json()["detail"])), known


def test_what_is_no_id_reads_as_one_that_is_nobodys(program: Caller) -> None:
    for path in ("confirmations/a", "confirmations/a/receipt", "confirmations/a/wait", "confirmations/%00"):
        assert refusal(program.get(path)) == (404, "not_found"), path


def test_who_has_left_waits_no_more(program: Caller) -> None:
    id_ = program.ask().json()["id"]
    at = urlsplit(program.url)
    request = f"GET /api/v1/confirmations/{id_}/wait?timeout=55 HTTP/1.1\r\nHost: {at.netloc}\r\n"
    opened = [socket.create_connection(("127.0.0.1", at.port or 80)) for _ in range(20)]
    for one in opened:
        one.sendall(f"{request}Authorization: Bearer {program.token}\r\n\r\n".encode())
    _until(20)

    for one in opened:
        one.close()

    _until(0)


def _until(number: int) -> None:
    ticks = threading.Event()
    for _ in range(400):
        assert hot._hot
        if hot._hot.places.taken.total() == number:
            return
        ticks.wait(0.05)
    raise AssertionError(f"{hot._hot and hot._hot.places.taken} wait")


@pytest.mark.parametrize("number", [300])
def test_a_crowd_that_waits_holds_up_no_redemption_and_hears_of_the_decision(
    program: Caller,
    alice: User,
    number: int,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hot, "MOST_OF_ONE", hot.MOST_WAITING)
    number = 5_000 if request.config.getoption("--long") else number
    asked = program.ask()
    id_, other = asked.json()["id"], approved(program, alice, action="payments.refund")
    path = f"{program.url}/api/v1/confirmations/{id_}/wait?timeout=55"

    def then() -> httpx2.Response:
        try:
            _until(number)
            redeemed = program.redeem(other, action="payments.refund")
            decide(row(asked), alice)
        finally:
            connection.close()
        return redeemed

    async def crowd() -> tuple[list[httpx2.Response], httpx2.Response]:
        headers = {"Authorization": f"Bearer {program.token}"}
        limits = httpx2.Limits(max_connections=number)
        async with httpx2.AsyncClient(headers=headers, limits=limits, timeout=120) as client:
            waits = asyncio.gather(*(client.get(path) for _ in range(number)))
            redeemed = await asyncio.to_thread(then)
            return await waits, redeemed

    answers, redeemed = asyncio.run(crowd())

    assert redeemed.status_code == 200
    assert {answer.json()["status"] for answer in answers} == {"approved"}

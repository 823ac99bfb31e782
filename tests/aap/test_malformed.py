"""Hostile and malformed input: each is refused in the protocol's form, and nothing is asked."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError

from confirmhub.aap import VERSION, refusals, wire
from confirmhub.aap.refusals import Malformed
from confirmhub.confirmations import errors
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status
from tests.aap.raw import REFUND, Raw, refusal
from tests.aap.test_client import DOCS
from tests.bridge.hosts import make_token
from tests.factories import decide


def body(**more: Any) -> bytes:
    return json.dumps(REFUND | more).encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in REFUND.items() if key != name}).encode()


MALFORMED = {
    "nothing": (b"", ""),
    "no JSON": (b"{", ""),
    "no object": (b"[]", ""),
    "a byte order mark": (b"\xef\xbb\xbf" + body(), ""),
    "no UTF-8": (b'{"tool": "\xff"}', ""),
    "a key twice": (b'{"tool": "a", "tool": "b", "arguments": {}, "timeout": "1m"}', ""),
    "an argument twice": (b'{"tool": "a", "arguments": {"a": 1, "a": 2}, "timeout": "1m"}', ""),
    "NaN": (b'{"tool": "a", "arguments": {"a": NaN}, "timeout": "1m"}', ""),
    "a number beyond a double": (b'{"tool": "a", "arguments": {"a": 1e400}, "timeout": "1m"}', ""),
    "an inexact number": (b'{"tool": "a", "arguments": {"a": 0.10000000000000000001}, "timeout": "1m"}', ""),
    "too deep": (
        b'{"tool": "a", "arguments": ' + b'{"a":' * 80 + b"1" + b"}" * 80 + b', "timeout": "1m"}',
        "",
    ),
    "an unknown field": (body(delivery={"url": "https://a.example"}), "delivery"),
    "edited arguments": (body(modified_arguments={}), "modified_arguments"),
    "no tool": (without("tool"), "tool"),
    "no arguments": (without("arguments"), "arguments"),
    "no timeout": (without("timeout"), "timeout"),
    "tool null": (body(tool=None), "tool"),
    "tool empty": (body(tool=""), "tool"),
    "tool a number": (body(tool=1), "tool"),
    "arguments null": (body(arguments=None), "arguments"),
    "arguments a list": (body(arguments=[]), "arguments"),
    "server null": (body(server=None), "server"),
    "server empty": (body(server=""), "server"),
    "server long": (body(server="x" * 201), "server"),
    "reasoning null": (body(agent_reasoning=None), "agent_reasoning"),
    "reasoning an object": (body(agent_reasoning={}), "agent_reasoning"),
    "context null": (body(context=None), "context"),
    "context text": (body(context="alice"), "context"),
    "timeout a number": (body(timeout=600), "timeout"),
    **{
        f"timeout {text!r}": (body(timeout=text), "timeout")
        for text in ("0s", "9s", "-1m", "1", "1 m", "01m", "1d", "1m\n", "1.5h", "\u0661m", "9" * 10 + "s")
    },
}
# What the action refuses, in its own words.
UNFIT = {
    "a name with a space": body(tool="issue refund"),
    "a name with a hidden character": body(tool="issue\u200brefund"),
    "a name in another script": body(tool="\u0456ssue_refund"),
    "a long name": body(tool="x" * 101),
    "arguments too large": body(arguments={"a": ["x" * 3_000] * 11}),
    "a value too long to be shown": body(arguments={"a": "\u202e\u200b" * 1_000}),
    "more rows than anybody reads": body(arguments={"a": [0] * 1_000}),
    "hidden reasoning": body(agent_reasoning="\u202e\u200b" * 450),
}


@pytest.mark.parametrize(("raw_body", "param"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_submission_names_what_is_wrong(raw_body: bytes, param: str) -> None:
    with pytest.raises(Malformed) as refused:
        wire.submission(raw_body)

    assert refused.value.param == param


@pytest.mark.parametrize(
    ("raw_body", "param"),
    [
        (b"", ""),
        (b"{}", "status"),
        (b'{"status": "unknown"}', "status"),
        (b'{"status": null}', "status"),
        (b'{"status": "failed", "note": ""}', "note"),
        (b'{"status": "failed", "note": null}', "note"),
        (b'{"status": "failed", "detail": "x"}', "detail"),
    ],
)
def test_a_malformed_outcome_names_what_is_wrong(raw_body: bytes, param: str) -> None:
    with pytest.raises(Malformed) as refused:
        wire.report(raw_body)

    assert refused.value.param == param


def test_over_http_each_is_400_and_asks_nobody(raw: Raw) -> None:
    malformed = {name: raw.send(sent) for name, (sent, _) in MALFORMED.items() if sent}
    unfit = {name: raw.send(sent) for name, sent in UNFIT.items()}

    wrong = [
        name
        for name, answer in (malformed | unfit).items()
        if refusal(answer)[:2] != (400, "invalid_request")
    ]
    assert wrong == []
    assert {refusal(answer)[2] for answer in unfit.values()} == {"invalid_action"}
    assert not Confirmation.objects.exists()


def test_headers_queries_and_bodies_that_are_not_of_the_protocol_are_refused(raw: Raw, alice: User) -> None:
    id_ = raw.ask().json()["id"]
    decide(Confirmation.objects.get(), alice)
    sent = {"Content-Type": "application/json"}
    key = ("Idempotency-Key", "k9")
    answers = {
        "no type": raw.call("POST", "requests", content=body(), headers=[key]),
        "a form": raw.call("POST", "requests", data={"tool": "a"}, headers=dict([key])),
        "two keys": raw.call("POST", "requests", content=body(), headers=[key, key, *sent.items()]),
        "an empty key": raw.send(body(), key=""),
        "a key with a space": raw.send(body(), key="a b"),
        "a long key": raw.send(body(), key="k" * 191),
        "two tokens": raw.call("GET", f"requests/{id_}", headers=[("Authorization", "Bearer x")] * 2),
        "an unknown query": raw.get(id_, "?verbose=1"),
        "a wait of nothing": raw.get(id_, "?wait="),
        "a wait without unit": raw.get(id_, "?wait=30"),
        "two waits": raw.get(id_, "?wait=1s&wait=2s"),
        "a query at the consumption": raw.call("POST", f"requests/{id_}/consume?wait=1s"),
        "other arguments at the consumption": raw.consume(id_, json={"arguments": {"amount": 1}}),
        "a body at the cancellation": raw.call("DELETE", f"requests/{id_}", json={}),
    }

    assert {
        name for name, answer in answers.items() if refusal(answer)[:2] != (400, "invalid_request")
    } == set()
    missing = [
        raw.call("POST", "requests", content=body(), headers=sent),
        raw.call("POST", f"requests/{id_}/consume"),
    ]
    assert [refusal(answer)[2] for answer in missing] == ["missing_idempotency_key"] * 2
    assert Confirmation.objects.get().status == Status.APPROVED


def test_only_a_bearer_token_of_ours_is_a_credential(raw: Raw, base: str) -> None:
    id_ = raw.ask().json()["id"]
    session = {"Cookie": "session=x"}
    headers: list[dict[str, str]] = [
        {},
        session,
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer x"},
        {"Authorization": f"Basic {raw.token}"},
        {"X-API-Key": str(raw.token)},
    ]
    for sent in headers:
        answer = Raw(base, None).call("GET", f"requests/{id_}", headers=sent)
        assert refusal(answer) == (401, "authentication", "invalid_credential"), sent
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert Raw(base, None).call("GET", f"requests/{id_}?access_token={raw.token}").status_code == 401


def test_each_call_takes_its_scope(raw: Raw, url: str, base: str, alice: User) -> None:
    id_ = raw.ask().json()["id"]
    reader = Raw(base, make_token(alice, resource=f"{url}/mcp", scope="confirm:read"))

    answers = [
        reader.ask(key="k2"),
        reader.cancel(id_),
        reader.consume(id_),
        reader.report(id_, status="failed"),
    ]

    assert [refusal(answer) for answer in answers] == [(403, "authorization", "insufficient_scope")] * 4
    assert reader.get(id_).status_code == 200


def test_no_token_manages_instances(raw: Raw, service: Raw, base: str) -> None:
    path = "instances/b29a43a7-1949-4b9f-9d61-b7ae66f85d31"
    callers = (raw, service)

    answers = [caller.call(method, path) for caller in callers for method in ("GET", "PATCH", "DELETE")]
    answers += [caller.call("POST", "instances", json={}) for caller in callers]

    assert {refusal(answer) for answer in answers} == {(403, "authorization", "provisioning_not_offered")}
    assert refusal(Raw(base, None).call("POST", "instances", json={}))[0] == 401


def test_nobody_decides_by_a_token(raw: Raw) -> None:
    id_ = raw.ask().json()["id"]
    tried = [
        *(
            raw.call("POST", f"requests/{id_}/{verb}", json={"status": "approved"})
            for verb in ("decision", "approve")
        ),
        raw.call("GET", f"requests/{id_}/approve"),
        raw.call("GET", "requests/nobody"),
        raw.call("GET", "webhooks"),
    ]
    methods = [
        raw.call(method, f"requests/{id_}", json={"status": "approved"})
        for method in ("PUT", "PATCH", "POST")
    ]

    assert [refusal(answer)[:2] for answer in tried] == [(404, "not_found")] * 5
    assert [refusal(answer) for answer in methods] == [(405, "invalid_request", "method_not_allowed")] * 3
    assert methods[0].headers["Allow"] == "GET, DELETE"
    assert Confirmation.objects.get().status == Status.PENDING


def test_what_is_refused_before_it_is_read_is_refused_in_the_same_form(raw: Raw, url: str) -> None:
    large = raw.send(body(context={"a": "x" * 70_000}))
    typed = raw.call(
        "POST", "requests", content=body(), headers={"Content-Type": "application/json; charset=utf-16"}
    )
    named = httpx2.get(f"{url}/aap/v1/requests", headers={"Host": "rebound.example"})

    assert refusal(large) == (413, "invalid_request", "too_large")
    assert refusal(typed) == (415, "invalid_request", "unsupported_media_type")
    assert refusal(named) == (400, "invalid_request", "wrong_host")


def test_what_nobody_expected_tells_nothing() -> None:
    answer = refusals.answer(RuntimeError("secret"))

    assert answer.status_code == 500
    assert b"secret" not in answer.body


def test_every_refusal_that_a_call_lets_through_has_its_status() -> None:
    translated = {  # in `calls`, each where it can come up
        errors.Pending,
        errors.Denied,
        errors.Expired,
        errors.Revoked,
        errors.Cancelled,
        errors.AlreadyRedeemed,
        errors.AlreadyDecided,
        errors.AlreadyReported,
    }
    of_people = {  # of moves that the protocol does not have
        errors.NotApprover,
        errors.NotPermitted,
        errors.PageNeeded,
        errors.SignInTooOld,
        errors.ViewChanged,
        errors.TargetChanged,
        errors.NotRedeemed,
    }

    kinds = {*errors.ConfirmationError.__subclasses__(), *errors.Busy.__subclasses__()}
    assert kinds == {*refusals.STATUS, *translated, *of_people}
    assert {*refusals.STATUS.values()} <= {*refusals.TYPES}


@pytest.mark.parametrize("away", [OperationalError, InterfaceError])
def test_a_database_that_is_away_is_no_bug_and_its_words_promise_nothing(away: type[Exception]) -> None:
    told = refusals.answer(away("server closed the connection"))

    assert (told.status_code, told.headers["Retry-After"]) == (503, "3")
    error = json.loads(bytes(told.body))["error"]
    assert (error["type"], error["code"]) == ("dependency", "unavailable")
    assert "may have been done or not" in error["message"]


def test_the_documentation_names_this_version() -> None:
    assert f"a version of its own, {VERSION}," in DOCS.read_text("utf-8")

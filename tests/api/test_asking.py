"""Asking, listing, reporting and taking back over HTTP: who may, what is refused, what the answers carry."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import Group, User

from confirmhub.confirmations import proof
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Mode, Verdict
from tests.api.serving import AUDIENCE, TRANSFER, Caller, make_service, refusal, row
from tests.bridge.hosts import make_token
from tests.confirmations.test_rules import make_rule
from tests.factories import decide, make_approved, make_user, principal_for, redeem


def test_a_program_asks_spends_the_yes_and_reports(program: Caller, alice: User) -> None:
    asked = program.ask(summary="The rent is due")
    id_ = asked.json()["id"]
    assert asked.status_code == 201
    assert asked.headers["Location"] == f"{program.url}/api/v1/confirmations/{id_}"
    assert (asked.json()["status"], asked.json()["page"]) == ("pending", f"{program.url}/confirm/{id_}")
    decide(row(asked), alice)

    redeemed = program.redeem(id_)
    reported = program.post(
        f"confirmations/{id_}/outcome", {"redemption_key": "k", "result": "succeeded", "detail": "Paid."}
    )
    again = program.redeem(id_)

    assert redeemed.json() | {"redeemed_at": ""} == {
        "confirmation_id": id_,
        "digest": asked.json()["digest"],
        "redemption_key": "k",
        "redeemed_at": "",
        "replayed": False,
        "outcome": None,
    }
    assert (reported.json()["status"], reported.json()["outcome"]["detail"]) == ("redeemed", "Paid.")
    assert (again.json()["replayed"], again.json()["outcome"]["result"]) == (True, "succeeded")
    assert refusal(program.redeem(id_, key="other")) == (409, "already_redeemed")


def test_a_receipt_is_fetched_signed_and_verified_with_the_published_keys(
    program: Caller, alice: User
) -> None:
    asked = program.ask()
    id_ = asked.json()["id"]
    assert refusal(program.get(f"confirmations/{id_}/receipt")) == (409, "not_redeemed")
    decide(row(asked), alice)
    program.redeem(id_)

    keys = httpx2.get(f"{program.url}/api/v1/receipt-keys").json()
    receipt = program.get(f"confirmations/{id_}/receipt").json()["receipt"]

    assert proof.verify(receipt=receipt, jwks=keys)["jti"] == id_


def test_asking_again_gets_the_open_one_and_says_so(program: Caller) -> None:
    first, second = program.ask(), program.ask()

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]


def test_of_two_equal_actions_one_is_open_and_what_it_was_asked_with_stays(
    service: Caller, alice: User
) -> None:
    job = TRANSFER | {"on_behalf_of": "alice"}
    first = service.post("confirmations", job | {"question": "Rent?"}, headers={"Idempotency-Key": "1"})

    same = service.post("confirmations", job | {"question": "More?"}, headers={"Idempotency-Key": "2"})
    arguments = job["arguments"] | {"job": "2"}
    other = service.post("confirmations", job | {"arguments": arguments}, headers={"Idempotency-Key": "2"})
    decide(row(first), alice)
    service.redeem(first.json()["id"])
    later = service.post("confirmations", job, headers={"Idempotency-Key": "3"})

    assert (same.status_code, same.json()["id"]) == (200, first.json()["id"])
    assert row(same).question == "Rent?"
    assert [other.status_code, later.status_code] == [201, 201]
    assert len({asked.json()["id"] for asked in (first, other, later)}) == 3


@pytest.mark.parametrize("key", ["abc", '"abc"'])
def test_a_key_gets_the_same_answer_whatever_became_of_it(program: Caller, alice: User, key: str) -> None:
    headers = {"Idempotency-Key": key}
    first = program.post("confirmations", TRANSFER, headers=headers)
    decide(row(first), alice, Verdict.DENY)

    second = program.post("confirmations", TRANSFER, headers=headers)
    other = program.post("confirmations", TRANSFER | {"action": "payments.refund"}, headers=headers)

    assert (second.status_code, second.json()["id"]) == (200, first.json()["id"])
    assert second.json()["status"] == "denied"
    assert refusal(other) == (409, "action_differs")


@pytest.mark.parametrize("key", ["", '""', "a b", "é".encode(), "x" * 201])
def test_a_malformed_key_is_refused(program: Caller, key: str | bytes) -> None:
    answer = program.post("confirmations", TRANSFER, headers={"Idempotency-Key": key})

    assert answer.status_code == 400, answer.text
    assert not Confirmation.objects.exists()


MISTAKEN: list[tuple[dict[str, Any], str]] = [
    ({}, "action"),
    ({"action": "a"}, "arguments"),
    ({"action": 1, "arguments": {}}, "action"),
    ({"action": "a", "arguments": []}, "arguments"),
    ({"action": "a", "arguments": "{}"}, "arguments"),
    ({"action": "a", "arguments": None}, "arguments"),
    ({"action": "a" * 101, "arguments": {}}, "action"),
    ({"action": "a", "arguments": {}, "summary": "x" * 1001}, "summary"),
    ({"action": "a", "arguments": {}, "sumary": "x"}, "sumary"),
    ({"action": "a", "arguments": {}, "question": "Sure?"}, "question"),
    ({"action": "a", "arguments": {}, "facts": [{"label": "a", "value": "b"}]}, "facts"),
    ({"action": "a", "arguments": {}, "fingerprint": "x"}, "fingerprint"),
    ({"action": "a", "arguments": {}, "facts": [[None, "x"]]}, "facts"),
    ({"action": "a", "arguments": {}, "facts": {"label": "x"}}, "facts"),
]


def test_a_field_that_is_not_as_it_must_be_is_named(program: Caller) -> None:
    for body, where in MISTAKEN:
        answer = program.post("confirmations", body)
        assert refusal(answer) == (400, "invalid_request"), body
        assert where in answer.json()["errors"], body
    assert not Confirmation.objects.exists()


def test_what_a_field_takes_is_said_in_words_that_help(program: Caller, service: Caller) -> None:
    ask = {"action": "a", "arguments": {}}
    named, facts = "Send a JSON object with the name and the value of each", "Send a JSON list of objects"
    for caller, body, words in (
        (program, ask | {"arguments": []}, f'{named}, such as {{"cents": 1250}}.'),
        (service, ask | {"facts": {}}, f"{facts}, each with a label and a value."),
        (service, ask | {"facts": ["x"]}, "Send a JSON object with a label and a value."),
    ):
        assert words in str(caller.post("confirmations", body).json()["errors"]), body
    assert "There are: pending, approved," in str(program.get("confirmations?status=open").json()["errors"])
    cursor = str(program.get("confirmations?cursor=2").json()["errors"])
    assert "Send what next_cursor of the page before said." in cursor


AMBIGUOUS = [
    b"",
    b"[]",
    b"null",
    b"{",
    b"\xff",
    b"\xef\xbb\xbf{}",
    b'{"action": "a", "action": "b", "arguments": {}}',
    b'{"action": "a", "arguments": {"x": 1, "x": 2}}',
    b'{"action": "a", "arguments": {"x": NaN}}',
    b'{"action": "a", "arguments": {"x": 9007199254740992}}',
    b'{"action": "a", "arguments": {"x": ' + b"[" * 80 + b"]" * 80 + b"}}",
]


@pytest.mark.parametrize("path", ["confirmations", "confirmations/{id}/redeem", "confirmations/{id}/outcome"])
def test_an_ambiguous_body_is_refused_everywhere(program: Caller, path: str) -> None:
    id_ = program.ask().json()["id"]

    for body in AMBIGUOUS:
        answer = program.call(
            "POST", path.format(id=id_), content=body, headers={"Content-Type": "application/json"}
        )
        assert refusal(answer)[0] == 400, body
    assert Confirmation.objects.count() == 1


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        ({"x": "a" * 33_000}, "a"),
        ({"x": "\ud800"}, "1a"),
        ({"\ud800": 1}, "a"),
        ({"x": "a" * 4001}, "a"),
        ({"x": [0] * 1_000}, "a"),
    ],
)
def test_what_could_not_be_shown_whole_is_refused(
    program: Caller, arguments: dict[str, Any], action: str
) -> None:
    answer = program.call(
        "POST",
        "confirmations",
        content=json.dumps({"action": action, "arguments": arguments}).encode(),
        headers={"Content-Type": "application/json"},
    )

    assert refusal(answer) == (400, "invalid_action")


def test_another_content_type_is_refused(program: Caller) -> None:
    answer = program.call("POST", "confirmations", content=b"a=b", headers={"Content-Type": "text/plain"})

    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [
        ("confirm:read", "POST", "confirmations"),
        ("confirm:read", "POST", "confirmations/{id}/cancel"),
        ("confirm:read confirm:request", "POST", "confirmations/{id}/redeem"),
        ("confirm:read confirm:request", "POST", "confirmations/{id}/outcome"),
        ("confirm:read confirm:request confirm:redeem", "GET", "waiting"),
    ],
)
def test_each_route_wants_its_own_scope(
    alice: User, program: Caller, scope: str, method: str, path: str
) -> None:
    id_ = program.ask().json()["id"]
    weak = Caller(program.url, make_token(alice, resource=f"{program.url}/mcp", scope=scope))

    answer = weak.call(method, path.format(id=id_), json={})

    assert refusal(answer) == (403, "insufficient_scope")
    assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"]


ROUTES = [
    ("GET", "confirmations"),
    ("POST", "confirmations"),
    ("GET", "confirmations/{id}"),
    ("GET", "confirmations/{id}/wait"),
    ("POST", "confirmations/{id}/redeem"),
    ("POST", "confirmations/{id}/outcome"),
    ("POST", "confirmations/{id}/cancel"),
    ("GET", "confirmations/{id}/receipt"),
    ("GET", "waiting"),
]


@pytest.mark.parametrize("token", [None, "unknown", "x" * 500])
def test_nobody_gets_anywhere_without_a_token(program: Caller, token: str | None) -> None:
    id_ = program.ask().json()["id"]

    for method, path in ROUTES:
        answer = Caller(program.url, token).call(method, path.format(id=id_))
        assert refusal(answer) == (401, "unauthenticated" if token is None else "invalid_token"), path
        assert answer.headers["WWW-Authenticate"].startswith("Bearer resource_metadata=")


def test_others_find_nothing_on_any_route(url: str, program: Caller, service: Caller, bob: User) -> None:
    id_ = program.ask().json()["id"]
    others = [Caller(url, make_token(bob, resource=f"{url}/mcp")), service, make_service(url, name="Other")]
    for other in others:
        answers = [
            other.get(f"confirmations/{id_}"),
            other.get(f"confirmations/{id_}/wait?timeout=0"),
            other.get(f"confirmations/{id_}/receipt"),
            other.redeem(id_),
            other.post(f"confirmations/{id_}/cancel", {}),
            other.post(f"confirmations/{id_}/outcome", {"redemption_key": "k", "result": "failed"}),
            other.get("confirmations/nonsense"),
            other.get("confirmations/nonsense/wait"),
        ]
        assert [refusal(answer)[0] for answer in answers] == [404] * len(answers)
        assert other.get("confirmations").json()["confirmations"] == []


def test_a_service_asks_for_a_person_it_names_in_its_own_words(service: Caller, alice: User) -> None:
    asked = service.ask(
        on_behalf_of="alice",
        question="Pay from the shared account?",
        facts=[{"label": "Balance", "value": "100 euro"}],
        fingerprint="b-100",
    )
    waiting = row(asked)

    assert asked.status_code == 201, asked.text
    assert (waiting.question, waiting.audience) == ("Pay from the shared account?", AUDIENCE)
    assert asked.json()["facts"] == [{"label": "Balance", "value": "100 euro"}]
    assert waiting.requester_subject == str(alice.pk)
    decide(waiting, alice)
    assert service.get(f"confirmations/{waiting.id}").json()["status"] == "approved"
    assert service.redeem(str(waiting.id)).status_code == 200
    assert [one["id"] for one in service.get("confirmations").json()["confirmations"]] == [str(waiting.id)]


def test_a_service_asks_a_group_where_a_rule_says_so(service: Caller) -> None:
    carol = make_user("carol")
    group = Group.objects.create(name="payers")
    group.user_set.add(carol)
    assert refusal(service.ask()) == (403, "policy_denies")
    make_rule(Mode.APPROVE, approver_group=group)

    asked = service.ask()
    decide(row(asked), carol)

    assert row(asked).requester_subject.startswith("client:")
    assert service.redeem(asked.json()["id"]).status_code == 200


@pytest.mark.parametrize("name", ["nobody", "ALICE", "alice ", "gone"])
def test_whom_a_service_cannot_name_reads_as_nobody(service: Caller, alice: User, name: str) -> None:
    make_user("gone", is_active=False)

    answer = service.ask(on_behalf_of=name)

    assert refusal(answer) == (403, "policy_denies")
    assert "on_behalf_of names nobody who can sign in here. It is the user name" in answer.json()["detail"]


def test_a_program_names_nobody_else(program: Caller, bob: User) -> None:
    assert refusal(program.ask(on_behalf_of="bob")) == (403, "policy_denies")


def test_a_question_is_taken_back(program: Caller) -> None:
    asked = program.ask()
    id_ = asked.json()["id"]

    answer = program.post(f"confirmations/{id_}/cancel", {"reason": "Not needed"})

    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert refusal(program.post(f"confirmations/{id_}/cancel", {})) == (409, "cancelled")
    assert row(asked).settled_reason == "Not needed"


@pytest.mark.parametrize("verdict", [None, Verdict.APPROVE, Verdict.DENY])
def test_an_outcome_before_the_redemption_is_refused_with_what_to_do(
    program: Caller, service: Caller, alice: User, verdict: Verdict | None
) -> None:
    asked = program.ask()
    path = f"confirmations/{asked.json()['id']}/outcome"
    report = {"redemption_key": "k", "result": "succeeded"}
    if verdict:
        decide(row(asked), alice, verdict)

    answer = program.post(path, report)

    assert refusal(answer) == (409, "not_redeemed")
    assert "was not redeemed, so it has no outcome" in answer.json()["title"]
    assert refusal(service.post(path, report)) == (404, "not_found")


@pytest.mark.parametrize(
    "report",
    [
        {"redemption_key": "other", "result": "failed"},
        {"redemption_key": "k", "result": "maybe"},
        {"redemption_key": "k"},
        {"result": "failed"},
    ],
)
def test_an_outcome_without_the_key_of_the_redemption_is_refused(
    program: Caller, alice: User, report: dict[str, str]
) -> None:
    asked = program.ask()
    decide(row(asked), alice)
    program.redeem(asked.json()["id"])

    answer = program.post(f"confirmations/{asked.json()['id']}/outcome", report)

    assert refusal(answer)[0] in (400, 404)
    assert program.get(f"confirmations/{asked.json()['id']}").json()["outcome"] is None


def test_what_a_tool_of_the_server_did_is_not_the_callers_to_report(program: Caller, alice: User) -> None:
    requester = principal_for(alice)
    mine = Action(
        audience=f"{program.url}/mcp", name="delete_file", arguments={"path": "/x"}, tool_digest=b"t" * 32
    )
    done = make_approved(requester, alice, action=mine)
    redeem(done, requester, action=mine, key="k")

    answer = program.post(
        f"confirmations/{done.id}/outcome",
        {"redemption_key": "k", "result": "succeeded", "detail": "Deleted."},
    )

    assert refusal(answer) == (404, "not_found")
    assert program.get(f"confirmations/{done.id}").json()["outcome"] is None

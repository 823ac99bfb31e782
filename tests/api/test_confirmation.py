"""GET /api/v1/confirmations/{id}, through Django's whole stack."""

from __future__ import annotations

import datetime as dt
import json
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from confirmhub.api.views import ConfirmationDetail
from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result, Verdict
from tests.api.conftest import Get
from tests.bridge.hosts import make_token
from tests.confirmations.clock import make_overdue
from tests.factories import ARGUMENTS, AUDIENCE, decide, make_approved, make_pending, principal_for, redeem

pytestmark = pytest.mark.django_db

METADATA = "http://localhost:8000/.well-known/oauth-protected-resource/mcp"


def test_a_requester_reads_what_it_asked_for(agent: Principal, get: Get) -> None:
    asked = make_pending(agent)

    answer = get(asked.id)

    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "no-store"
    assert answer.json() == {
        "id": str(asked.id),
        "status": "pending",
        "audience": AUDIENCE,
        "action": "payments.transfer",
        "arguments": ARGUMENTS,
        "facts": [],
        "fingerprint": "",
        "page": f"http://localhost:8000/confirm/{asked.id}",
        "digest": bytes(asked.digest).hex(),
        "view_digest": bytes(asked.view_digest).hex(),
        "requested_at": moment(asked.requested_at),
        "decide_by": moment(asked.decide_by),
        "settled_at": None,
        "redeem_by": None,
        "redeemed_at": None,
        "decisions": [],
        "outcome": None,
    }


def test_times_are_utc_wherever_the_process_runs(agent: Principal, get: Get, settings: object) -> None:
    asked = make_pending(agent)
    settings.TIME_ZONE = "Asia/Kolkata"

    assert get(asked.id).json()["decide_by"] == moment(asked.decide_by)


def test_a_requester_reads_what_was_decided_and_what_came_of_it(
    agent: Principal, alice: User, get: Get
) -> None:
    approved = make_approved(agent, alice)
    receipt = redeem(approved, agent)
    ledger.report_outcome(receipt=receipt, result=Result.FAILED, detail="no such account")

    read = get(approved.id).json()

    assert read["status"] == "redeemed"
    assert read["redeemed_at"] == moment(receipt.redeemed_at)
    assert [decision["verdict"] for decision in read["decisions"]] == ["approve"]
    assert read["decisions"][0]["decided_at"].endswith("Z")
    assert read["outcome"]["result"] == "failed"
    assert read["outcome"]["detail"] == "no such account"


def test_a_requester_reads_why_it_was_denied_and_not_by_whom(agent: Principal, alice: User, get: Get) -> None:
    denied = decide(make_pending(agent), alice, Verdict.DENY, reason="not on a Monday")

    answer = get(denied.id)

    assert answer.json()["status"] == "denied"
    assert answer.json()["decisions"][0]["reason"] == "not on a Monday"
    assert b"alice" not in answer.content


def test_expiry_is_told_before_the_sweeper_ran(agent: Principal, get: Get) -> None:
    late = make_pending(agent)
    hour = dt.timedelta(hours=1)
    make_overdue(late, requested_at=Now() - 2 * hour, decide_by=Now() - hour)

    assert get(late.id).json()["status"] == "expired"


def test_arguments_come_back_exactly_as_they_were_asked_for(agent: Principal, get: Get) -> None:
    arguments = {
        "half": "\ud800",
        "bidi": "a\u202eb",
        "separator": "\u2028",
        "nul": "\0",
        "one": 1,
        "one as a double": 1.0,
        "tenth": 0.1,
        "most": 2**53 - 1,
        "nested": {"b": [None, True, {}], "a": ""},
    }
    action = Action(audience=AUDIENCE, name="files.write", arguments=arguments)
    asked = make_pending(agent, action=action)

    answer = get(asked.id)

    assert answer.content.isascii()
    read = json.loads(answer.content)["arguments"]
    assert json.dumps(read, sort_keys=True, separators=(",", ":")) == action.canonical


def test_what_is_not_yours_reads_as_what_never_was(
    agent: Principal, alice: User, bob: User, get: Get
) -> None:
    of_another_person = make_pending(principal_for(bob))
    of_another_client = make_pending(principal_for(alice, client_id="https://other.example/client.json"))

    answers = [get(each) for each in (uuid4(), of_another_person.id, of_another_client.id)]

    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert problem_of(answers[0])["type"] == "urn:confirmhub:not_found"


def test_without_a_token_nobody_reads_and_is_told_where_to_get_one(agent: Principal, get: Get) -> None:
    answer = get(make_pending(agent).id, None)

    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == f'Bearer resource_metadata="{METADATA}", scope="confirm:read"'
    assert problem_of(answer)["type"] == "urn:confirmhub:unauthenticated"


@pytest.mark.parametrize(
    "authorization",
    [
        pytest.param("Bearer", id="no-token"),
        pytest.param("Bearer ", id="empty-token"),
        pytest.param("Bearer unknown", id="unknown"),
        pytest.param("Bearer {token},Bearer {token}", id="two"),
        pytest.param("Bearer {token} ", id="trailing-space"),
        pytest.param("Bearer  {token}", id="two-spaces"),
        pytest.param("Bearer {token}\u00e9", id="not-ascii"),
        pytest.param("Bearer " + "a" * 100_000, id="too-long"),
    ],
)
def test_a_token_that_is_not_one_is_refused(
    agent: Principal, get: Get, token: str, authorization: str
) -> None:
    answer = get(make_pending(agent).id, authorization.format(token=token))

    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer["WWW-Authenticate"]
    assert problem_of(answer)["type"] == "urn:confirmhub:invalid_token"


def test_a_token_for_another_resource_is_refused(agent: Principal, alice: User, get: Get) -> None:
    foreign = make_token(alice, resource="https://elsewhere.example/mcp")

    assert get(make_pending(agent).id, f"Bearer {foreign}").status_code == 401


def test_a_token_is_taken_from_the_header_alone(agent: Principal, get: Get, token: str) -> None:
    answer = get(make_pending(agent).id, None, query_params={"access_token": token})

    assert answer.status_code == 401


@pytest.mark.parametrize("authorization", ["Basic YWxpY2U6cHc=", "Digest x", "bearer"])
def test_another_scheme_is_no_credential(agent: Principal, get: Get, authorization: str) -> None:
    assert get(make_pending(agent).id, authorization).status_code == 401


def test_a_scheme_is_read_in_any_case(agent: Principal, get: Get, token: str) -> None:
    assert get(make_pending(agent).id, f"bEARER {token}").status_code == 200


def test_a_signed_in_browser_is_no_credential(agent: Principal, alice: User) -> None:
    browser = Client()
    browser.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")

    answer = browser.get(f"/api/v1/confirmations/{make_pending(agent).id}")

    assert answer.status_code == 401


def test_a_token_without_the_scope_is_told_which(
    agent: Principal, get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConfirmationDetail, "required_scope", "confirm:admin")

    answer = get(make_pending(agent).id)

    assert answer.status_code == 403
    assert 'error="insufficient_scope", scope="confirm:admin"' in answer["WWW-Authenticate"]


def test_a_view_that_names_no_scope_lets_nobody_in(
    agent: Principal, get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConfirmationDetail, "scopes", {})

    assert get(make_pending(agent).id).status_code == 403


def test_an_administrators_token_implies_reading(agent: Principal, alice: User, get: Get) -> None:
    token = make_token(alice, resource=settings.MCP_RESOURCE, scope="confirm:admin")

    assert get(make_pending(agent).id, f"Bearer {token}").status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
def test_nothing_but_reading_is_offered(agent: Principal, token: str, method: str) -> None:
    asked = make_pending(agent)
    send = getattr(Client(), method)

    answer = send(f"/api/v1/confirmations/{asked.id}", headers={"Authorization": f"Bearer {token}"})

    assert answer.status_code == 405
    assert problem_of(answer)["status"] == 405


def test_a_malformed_id_is_not_found(get: Get) -> None:
    assert get("1").status_code == 404
    assert get("../confirmations").status_code == 404


def test_a_failure_inside_is_a_problem_without_details(
    agent: Principal, get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("password=hunter2")

    asked = make_pending(agent)
    monkeypatch.setattr("confirmhub.api.views.queries.get_for_requester", fail)

    answer = get(asked.id)

    assert answer.status_code == 500
    assert b"hunter2" not in answer.content


def problem_of(answer: HttpResponse) -> dict[str, object]:
    assert answer["Content-Type"] == "application/problem+json"
    problem: dict[str, object] = answer.json()
    assert problem["status"] == answer.status_code
    return problem


def moment(at: dt.datetime) -> str:
    return at.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def test_what_waits_is_read_in_as_many_queries_however_much_it_is(agent: Principal, alice: User) -> None:
    token = make_token(alice, resource=settings.MCP_RESOURCE, scope="confirm:admin")

    def read() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as captured:
            answer = Client().get("/api/v1/waiting", headers={"Authorization": f"Bearer {token}"})
        return len(answer.json()["confirmations"]), len(captured)

    make_pending(agent)
    read()  # the first use of the token is written down
    found, queries = read()
    for number in range(3):
        make_pending(agent, action=Action(audience=AUDIENCE, name=f"a{number}", arguments={}))

    assert (found, read()) == (1, (4, queries))

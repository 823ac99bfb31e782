"""The protocol's operations over plain HTTP: what each does, and whom and what it refuses."""

from __future__ import annotations

import datetime as dt
import json
import uuid

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from confirmhub.aap.models import Submission
from confirmhub.confirmations import audit, ledger
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.states import Mode, Status, Verdict
from confirmhub.oauth import throttle
from confirmhub.oauth.models import AccessToken
from confirmhub.oauth.throttle import Limit
from tests.aap.raw import REFUND, Raw, refusal
from tests.api.serving import Caller, make_service
from tests.bridge.hosts import make_token
from tests.confirmations.clock import make_overdue
from tests.factories import decide, kinds_of_events, make_user
from tests.invariants import proves

CONTEXT = {"call_id": "c", "nested": {"list": [1, 1.5, None, True], "half": "\ud800"}}


def row(answer: httpx2.Response) -> Confirmation:
    return Confirmation.objects.get(id=answer.json()["id"])


def approved(raw: Raw, alice: User, **asked: object) -> str:
    confirmation = decide(row(raw.ask(**asked)), alice)
    return str(confirmation.id)


def test_what_was_submitted_is_given_back_exactly(raw: Raw) -> None:
    more = {"server": "stripe", "context": CONTEXT, "agent_reasoning": ""}

    made = raw.ask(**more)
    read = raw.get(made.json()["id"])

    assert made.status_code == 201
    assert made.headers["Cache-Control"] == "no-store"
    uuid.UUID(made.headers["X-Request-ID"])
    assert read.status_code == 200
    assert read.json() == made.json()
    assert {name: made.json()[name] for name in [*REFUND, *more]} == REFUND | more
    assert made.json()["status"] == "pending"
    assert "decision" not in made.json()


def test_the_same_key_gets_the_same_request_in_its_current_state(raw: Raw, alice: User) -> None:
    first = raw.ask(context=CONTEXT)
    decide(row(first), alice)

    again = raw.send(json.dumps(dict(reversed((REFUND | {"context": CONTEXT}).items()))).encode())

    assert again.status_code == 200
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["status"] == "approved"


def test_the_same_key_for_anything_else_is_refused(raw: Raw) -> None:
    first = raw.ask()
    others: list[dict[str, object]] = [
        {"tool": "issue_refunds"},
        {"arguments": {}},
        {"arguments": {**REFUND["arguments"], "amount": 4900.0}},
        {"timeout": "600s"},
        {"server": "stripe"},
        {"agent_reasoning": ""},
        {"context": {}},
    ]

    refused = [refusal(raw.ask(**other)) for other in others]

    assert refused == [(409, "conflict", "idempotency_conflict")] * len(others)
    assert raw.get(first.json()["id"]).json() == first.json()
    assert Confirmation.objects.count() == 1


def test_a_key_of_the_api_is_none_of_the_protocol(raw: Raw, url: str) -> None:
    api = Caller(url, raw.token)
    asked = {"action": "issue_refund", "arguments": REFUND["arguments"]}
    api.post("confirmations", asked, headers={"Idempotency-Key": "aap:k1"})
    api.post("confirmations", asked | {"action": "other"}, headers={"Idempotency-Key": "k2"})

    assert refusal(raw.ask(key="k1")) == (409, "conflict", "idempotency_conflict")
    assert raw.ask(key="k2").status_code == 201


def test_a_timeout_shortens_the_time_to_decide_and_never_lengthens_it(raw: Raw) -> None:
    given = {}
    for timeout in ("10s", "5m", "600s", "999999999h"):
        confirmation = row(raw.ask(key=timeout, timeout=timeout))
        given[timeout] = (confirmation.decide_by - confirmation.requested_at).total_seconds()

    assert given == {"10s": 10, "5m": 300, "600s": 600, "999999999h": 600}


def test_reasoning_is_the_summary_and_cut_where_people_see_it(raw: Raw) -> None:
    made = raw.ask(agent_reasoning="x" * 5_000)

    assert made.json()["agent_reasoning"] == "x" * 5_000
    assert row(made).summary == "x" * 940 + " [confirmhub: 4060 more characters left out]"


def test_a_policy_that_allows_answers_at_once_and_the_yes_is_still_spent_once(raw: Raw) -> None:
    Rule.objects.create(name="refunds", rank=1, mode=Mode.ALLOW)

    made = raw.ask()

    assert made.status_code == 201
    assert made.json()["decision"]["status"] == made.json()["status"] == "approved"
    assert raw.consume(made.json()["id"]).status_code == 200
    assert refusal(raw.consume(made.json()["id"], key="c2"))[0] == 409


def test_a_policy_that_denies_is_told(raw: Raw) -> None:
    Rule.objects.create(name="refunds", rank=1, mode=Mode.DENY)

    assert refusal(raw.ask()) == (403, "authorization", "policy_denies")


def test_the_type_of_a_body_is_read_in_any_case(raw: Raw) -> None:
    headers = {"Content-Type": "Application/JSON; charset=UTF-8", "Idempotency-Key": "k1"}

    made = raw.call("POST", "requests", content=json.dumps(REFUND).encode(), headers=headers)

    assert made.status_code == 201


def test_a_cancelled_request_is_cancelled_again_with_the_same_answer(raw: Raw) -> None:
    id_ = raw.ask().json()["id"]

    first, again = raw.cancel(id_), raw.cancel(id_)

    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert first.json()["decision"]["status"] == first.json()["status"] == "cancelled"
    assert refusal(raw.consume(id_)) == (409, "conflict", "not_approved")


def test_what_is_settled_is_not_cancelled(raw: Raw, alice: User) -> None:
    made = {how: row(raw.ask(key=how)) for how in ("approved", "denied", "expired", "consumed", "revoked")}
    make_overdue(made["expired"], decide_by=F("requested_at") + dt.timedelta(milliseconds=1))
    decide(made["denied"], alice, Verdict.DENY)
    for how in ("approved", "consumed", "revoked"):
        decide(made[how], alice)
    raw.consume(str(made["consumed"].id))
    ledger.revoke(confirmation_id=made["revoked"].id, revoker=alice, reason="No longer.")

    for how, confirmation in made.items():
        before = raw.get(str(confirmation.id)).json()
        assert refusal(raw.cancel(str(confirmation.id))) == (409, "conflict", "already_terminal"), how
        assert raw.get(str(confirmation.id)).json() == before


def test_what_nobody_decided_on_reads_expired_before_and_after_the_sweeper(raw: Raw) -> None:
    confirmation = row(raw.ask())
    make_overdue(confirmation, decide_by=F("requested_at") + dt.timedelta(milliseconds=1))

    before = raw.get(str(confirmation.id)).json()
    ledger.expire_due(limit=10)

    assert before["decision"] == {"status": "expired", "decided_at": before["deadline_at"]}
    assert raw.get(str(confirmation.id)).json() == before
    assert refusal(raw.consume(str(confirmation.id))) == (409, "conflict", "not_approved")


def test_an_unused_approval_stays_approved_and_is_not_consumed(raw: Raw, alice: User) -> None:
    id_ = approved(raw, alice)
    make_overdue(Confirmation.objects.get(), redeem_by=Now())

    before = raw.get(id_).json()
    refused = refusal(raw.consume(id_))
    ledger.expire_due(limit=10)

    assert before["status"] == "approved"
    assert refused == (409, "conflict", "approval_expired")
    assert raw.get(id_).json() == before


def test_a_revoked_approval_reads_denied_and_is_not_consumed(raw: Raw, alice: User) -> None:
    id_ = approved(raw, alice)
    ledger.revoke(confirmation_id=uuid.UUID(id_), revoker=alice, reason="No\u202elonger.")

    decision = raw.get(id_).json()["decision"]

    assert decision["status"] == "denied"
    assert "\u202e" not in decision["note"]
    assert "expires_at" not in decision
    assert refusal(raw.consume(id_)) == (409, "conflict", "not_approved")


def test_what_is_stopped_is_not_consumed(raw: Raw, alice: User) -> None:
    id_ = approved(raw, alice)
    operator = make_user("operator", is_superuser=True)
    ledger.halt(operator=operator, reason="We look at this first.")

    assert refusal(raw.consume(id_)) == (409, "conflict", "halted")
    assert Confirmation.objects.get().status == Status.APPROVED


def test_a_yes_is_consumed_once_and_its_key_gets_the_same_answer(raw: Raw, url: str, alice: User) -> None:
    id_ = approved(raw, alice)

    first, again = raw.consume(id_), raw.consume(id_)

    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert first.json()["consumption"]["consumed_at"] >= first.json()["decision"]["decided_at"]
    assert refusal(raw.consume(id_, key="c2")) == (409, "conflict", "already_consumed")
    assert kinds_of_events(Confirmation.objects.get()) == ["requested", "approve", "redeemed", "refused"]
    assert Caller(url, raw.token).get(f"confirmations/{id_}/receipt").status_code == 200


def test_what_nobody_decided_on_is_not_consumed(raw: Raw) -> None:
    assert refusal(raw.consume(raw.ask().json()["id"])) == (409, "conflict", "not_approved")


def test_a_token_for_another_audience_consumes_nothing(service: Raw, alice: User) -> None:
    id_ = approved(service, alice)
    application = AccessToken.objects.get().application
    application.audience = "https://other.example/api"
    application.save()
    AccessToken.objects.update(resource=[application.audience])

    assert refusal(service.consume(id_)) == (409, "conflict", "action_differs")


def test_an_outcome_is_recorded_once(raw: Raw, alice: User) -> None:
    id_ = approved(raw, alice)
    early = refusal(raw.report(id_, status="succeeded"))
    raw.consume(id_)

    first = raw.report(id_, status="failed", note="no money")
    again = raw.report(id_, status="failed", note="no money")

    assert early == (409, "conflict", "not_consumed")
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    told = first.json()["consumption"]["outcome"]
    assert (told["status"], told["note"]) == ("failed", "no money")
    for other in ({"status": "succeeded"}, {"status": "failed"}, {"status": "failed", "note": "other"}):
        assert refusal(raw.report(id_, **other)) == (409, "conflict", "outcome_conflict")


def test_a_report_does_not_fail_for_its_length(raw: Raw, alice: User) -> None:
    id_ = approved(raw, alice)
    raw.consume(id_)

    answers = [raw.report(id_, status="succeeded", note="x" * 10_000) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert "more, sha256" in answers[0].json()["consumption"]["outcome"]["note"]


@proves("redeem:own")
def test_other_tenants_find_nothing(raw: Raw, service: Raw, url: str, base: str, alice: User) -> None:
    id_ = approved(raw, alice)
    bob = make_user("bob")
    others = [
        service,
        Raw(base, make_service(url, name="Other").token),
        Raw(base, make_token(bob, resource=f"{url}/mcp")),
        Raw(base, make_token(alice, resource=f"{url}/mcp", client_id="https://other.example/client.json")),
    ]

    for other in others:
        found = [
            other.get(id_),
            other.get(id_, "?wait=30s"),
            other.cancel(id_),
            other.consume(id_),
            other.report(id_, status="succeeded"),
        ]
        assert [refusal(answer) for answer in found] == [(404, "not_found", "not_found")] * 5

    assert raw.get(id_).json()["status"] == "approved"
    assert raw.consume(id_).status_code == 200


def test_what_was_asked_in_another_way_is_not_found(raw: Raw, url: str) -> None:
    id_ = Caller(url, raw.token).ask().json()["id"]

    assert refusal(raw.get(id_)) == (404, "not_found", "not_found")
    assert refusal(raw.cancel(id_)) == (404, "not_found", "not_found")


def test_more_questions_than_a_minute_may_have_are_refused(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "ASKING", Limit(what="api-create", count=1, within=dt.timedelta(days=1)))

    assert raw.ask(key="k1").status_code == 201
    answer = raw.ask(key="k2")

    assert refusal(answer) == (429, "rate_limit", "too_many_requests")
    assert int(answer.headers["Retry-After"]) > 0


def test_more_open_questions_than_a_policy_allows_are_refused(raw: Raw) -> None:
    Rule.objects.create(name="few", rank=1, mode=Mode.CONFIRM, max_open=1)
    raw.ask(key="k1")

    answer = raw.ask(key="k2")

    assert refusal(answer) == (429, "rate_limit", "too_many_open")
    assert int(answer.headers["Retry-After"]) > 0


def test_a_question_that_cannot_be_kept_whole_is_not_asked(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise IntegrityError

    monkeypatch.setattr(Submission.objects, "create", fail)

    assert refusal(raw.ask()) == (500, "internal", "internal")
    assert not Confirmation.objects.exists()


@proves("rows:asked-is-fixed")
def test_a_submission_never_changes_and_leaves_with_its_confirmation(raw: Raw) -> None:
    confirmation = row(raw.ask())
    raw.cancel(str(confirmation.id))
    for change in (
        lambda: Submission.objects.update(rest="{}"),
        lambda: Submission.objects.all()._raw_delete("default"),
    ):
        with pytest.raises(IntegrityError, match="only ever added"), transaction.atomic():
            change()
    audit.seal(limit=10)
    make_overdue(
        confirmation,
        requested_at=Now() - dt.timedelta(days=3),
        decide_by=Now() - dt.timedelta(days=2),
        settled_at=Now() - dt.timedelta(days=2),
    )

    assert audit.retire(older_than=dt.timedelta(days=1), limit=10) == 1
    assert not Submission.objects.exists()

"""Listing, reading again, and how often may be asked."""

from __future__ import annotations

import secrets
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation
from confirmhub.oauth import throttle
from tests.api.serving import Caller, refusal, row
from tests.bridge.hosts import make_token
from tests.factories import decide


def test_a_list_goes_page_by_page_and_misses_and_repeats_none(program: Caller, alice: User) -> None:
    ids = [program.ask(action=f"a{number}").json()["id"] for number in range(5)]
    decide(Confirmation.objects.get(id=UUID(ids[1])), alice)

    def pages(**query: str) -> list[str]:
        found: list[str] = []
        cursor: str | None = None
        while True:
            given = query | ({"cursor": cursor} if cursor else {})
            page = program.get("confirmations", params=given).json()
            found += [one["id"] for one in page["confirmations"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    assert pages(limit="2") == ids[::-1]
    assert pages(status="approved") == [ids[1]]
    assert pages(status="pending", limit="1") == [ids[4], ids[3], ids[2], ids[0]]
    assert pages(action="a3") == [ids[3]]
    assert pages(status="expired") == []


def test_a_query_that_is_not_understood_is_refused(program: Caller) -> None:
    for query in (
        "limit=0",
        "limit=101",
        "limit=x",
        "status=done",
        "cursor=x",
        "sort=asc",
        "limit=1&limit=2",
        "action=a%00b",
        "%00=1",
    ):
        assert refusal(program.get(f"confirmations?{query}")) == (400, "invalid_request"), query


def test_what_has_not_changed_is_not_sent_again(program: Caller, alice: User) -> None:
    asked = program.ask()
    path = f"confirmations/{asked.json()['id']}"
    tag = program.get(path).headers["ETag"]
    assert tag == asked.headers["ETag"]

    same = program.get(path, headers={"If-None-Match": f'"other", {tag}'})
    decide(row(asked), alice)
    changed = program.get(path, headers={"If-None-Match": tag})

    assert (same.status_code, same.content) == (304, b"")
    assert (changed.status_code, changed.json()["status"]) == (200, "approved")


def test_too_many_questions_in_a_minute_wait(program: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = throttle.Limit(what=secrets.token_hex(4), count=2, within=throttle.ASKING.within)
    monkeypatch.setattr(throttle, "ASKING", limit)

    answers = [program.ask() for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 200, 429]
    assert answers[0].headers["RateLimit-Policy"] == '"create";q=2;w=60'
    assert answers[0].headers["RateLimit"].startswith('"create";r=1;t=')
    assert refusal(answers[2]) == (429, "too_many_requests")
    assert 0 < int(answers[2].headers["Retry-After"]) <= 60


def test_an_approvers_script_reads_what_waits_and_decides_nothing(
    url: str, program: Caller, alice: User
) -> None:
    id_ = program.ask().json()["id"]
    script = Caller(url, make_token(alice, resource=f"{url}/mcp", scope="confirm:admin"))

    assert [one["id"] for one in script.get("waiting").json()["confirmations"]] == [id_]
    for path in (f"confirmations/{id_}/decide", f"confirmations/{id_}/approve"):
        assert script.post(path, {"verdict": "approve"}).status_code == 404
    assert refusal(script.call("PUT", f"confirmations/{id_}")) == (405, "method_not_allowed")

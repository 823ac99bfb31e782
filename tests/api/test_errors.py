"""The table of refusals."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from django.db import InterfaceError, OperationalError

from confirmhub.api.errors import STATUS, handle
from confirmhub.confirmations import errors

REDEEMED_AT = dt.datetime(2026, 11, 30, 12, 0, tzinfo=dt.UTC)


def kinds(of: type[errors.ConfirmationError]) -> set[type[errors.ConfirmationError]]:
    return {kind for child in of.__subclasses__() for kind in {child, *kinds(child)}}


def make(kind: type[errors.ConfirmationError]) -> errors.ConfirmationError:
    match kind:
        case errors.Pending | errors.TooManyOpen | errors.Busy | errors.Unavailable:
            return kind(retry_after=7)
        case errors.Denied | errors.Revoked | errors.Halted:
            return kind(reason="not today")
        case errors.AlreadyRedeemed:
            return kind(redeemed_at=REDEEMED_AT)
        case _:
            return kind()


def test_every_refusal_of_the_ledger_has_a_status() -> None:
    assert set(STATUS) == kinds(errors.ConfirmationError)


def test_no_two_refusals_have_the_same_type() -> None:
    types = {handle(make(kind), {}).data["type"] for kind in STATUS}

    assert len(types) == len(STATUS)


@pytest.mark.parametrize("kind", STATUS, ids=lambda kind: kind.code)
def test_a_refusal_becomes_a_problem(kind: type[errors.ConfirmationError]) -> None:
    answer = handle(make(kind), {})

    assert answer.status_code == answer.data["status"] == STATUS[kind]
    assert answer.content_type == "application/problem+json"
    assert answer.data["type"] == f"urn:confirmhub:{kind.code}"
    assert answer.data["title"] == kind.__doc__


@pytest.mark.parametrize("kind", [errors.Pending, errors.TooManyOpen, errors.Busy, errors.Unavailable])
def test_a_refusal_for_now_says_when_to_come_back(kind: type[errors.ConfirmationError]) -> None:
    assert handle(make(kind), {})["Retry-After"] == "7"


@pytest.mark.parametrize("away", [OperationalError, InterfaceError])
def test_a_database_that_is_away_is_no_bug_and_its_words_promise_nothing(away: type[Exception]) -> None:
    answer = handle(away("server closed the connection"), {})

    assert (answer.status_code, answer["Retry-After"]) == (503, "3")
    assert answer.data["type"] == "urn:confirmhub:unavailable"
    assert "may have been done or not" in answer.data["title"]


def test_a_refusal_carries_what_its_caller_can_use() -> None:
    assert handle(make(errors.Denied), {}).data["reason"] == "not today"
    assert handle(make(errors.AlreadyRedeemed), {}).data["redeemed_at"] == REDEEMED_AT
    assert handle(errors.InvalidAction("The name is too long."), {}).data["detail"] == "The name is too long."


def test_a_bug_says_nothing_of_itself(caplog: pytest.LogCaptureFixture) -> None:
    answer = handle(RuntimeError("password=hunter2"), {})

    assert answer.status_code == 500
    assert "hunter2" not in json.dumps(answer.data)
    assert "hunter2" in caplog.text

"""The inbox's count as it changes: for whose session it is, as long as that lasts, and cheap while idle."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.functions import Now
from django.test import Client

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result
from confirmhub.pages import live
from tests.confirmations.clock import make_overdue
from tests.factories import AUDIENCE, decide, make_pending, principal_for, redeem
from tests.ops.service import wait_until

FOREVER = dt.timedelta(hours=1)


@pytest.fixture
def url(application: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(live, "PAUSE", 0.01)
    monkeypatch.setattr(live, "LOOK_AGAIN", FOREVER)  # what is told must come from a notification
    return f"{application}/live"


def cookies(user: User) -> dict[str, str]:
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    return {name: client.cookies[name].value}


class Stream:
    """One open stream, read event by event."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self.lines = answer.iter_lines()

    def next(self) -> dict[str, Any]:
        """The data of the next event; the name alone for the last one."""
        for line in self.lines:
            if line == "event: end":
                return {"event": "end"}
            if line.startswith("data: "):
                found: dict[str, Any] = json.loads(line.removeprefix("data: "))
                return found
        pytest.fail("the stream is over")


@contextmanager
def stream(url: str, user: User) -> Iterator[Stream]:
    with (
        httpx2.Client(cookies=cookies(user), timeout=20) as client,
        client.stream("GET", url) as answer,
    ):
        assert answer.status_code == 200, answer.status_code
        yield Stream(answer)


def test_it_tells_what_waits_now_and_each_change(url: str, alice: User, agent: Principal) -> None:
    with stream(url, alice) as events:
        assert events.next() == {"count": 0, "newest": 0}

        asked = make_pending(agent)
        news = events.next()
        assert news["count"] == 1
        assert abs(news["newest"] - asked.requested_at.timestamp() * 1_000_000) < 1

        decide(asked, alice)
        assert events.next() == {"count": 0, "newest": 0}


def test_it_tells_nobody_of_what_others_are_asked(url: str, alice: User, bob: User, agent: Principal) -> None:
    with stream(url, bob) as events:
        assert events.next()["count"] == 0

        make_pending(agent)
        make_pending(principal_for(bob))

        assert events.next()["count"] == 1


def test_how_a_confirmation_stands_is_told_step_by_step(
    url: str, alice: User, agent: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "FOLLOW", dt.timedelta(seconds=0.05))  # that a yes is used, nobody is told
    asked = make_pending(agent)
    with stream(f"{url}?of={asked.id}", alice) as events:
        assert events.next()["standing"] == "pending 0"

        decide(asked, alice)
        assert events.next()["standing"] == "approved 1"

        receipt = redeem(asked, agent)
        assert events.next()["standing"] == "redeemed 1"

        ledger.report_outcome(receipt=receipt, result=Result.FAILED, detail="")
        assert events.next()["standing"] == "redeemed 1 failed"


@pytest.mark.parametrize("of", ["theirs", "00000000-0000-4000-8000-000000000000", "x", "%00"])
def test_how_a_confirmation_of_others_stands_is_told_to_nobody(
    url: str, alice: User, bob: User, of: str
) -> None:
    theirs = make_pending(principal_for(bob))

    with stream(f"{url}?of={theirs.id if of == 'theirs' else of}", alice) as events:
        assert events.next() == {"count": 0, "newest": 0}


def test_what_expires_is_noticed_without_being_told(
    url: str, alice: User, agent: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LOOK_AGAIN", dt.timedelta(seconds=0.1))
    asked = make_pending(agent)
    with stream(url, alice) as events:
        assert events.next()["count"] == 1

        make_overdue(asked, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

        assert events.next()["count"] == 0


@pytest.mark.parametrize("how", ["sign-out", "new password", "deactivated"])
def test_it_ends_with_the_session(url: str, alice: User, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_AGAIN", dt.timedelta(seconds=0.1))
    with stream(url, alice) as events:
        assert events.next()["count"] == 0

        if how == "sign-out":
            Session.objects.all().delete()
        elif how == "new password":
            alice.set_password("another horse battery")
        else:
            alice.is_active = False
        alice.save()

        assert events.next() == {"event": "end"}
        with pytest.raises(pytest.fail.Exception):
            events.next()


@pytest.mark.parametrize(
    "headers",
    [{}, {"Cookie": "session=unknown"}, {"Cookie": "session="}, {"Authorization": "Bearer anything"}],
    ids=["none", "unknown", "empty", "bearer"],
)
def test_it_needs_a_session(url: str, headers: dict[str, str]) -> None:
    answer = httpx2.get(url, headers=headers)

    assert (answer.status_code, answer.content) == (401, b"")
    assert answer.headers["Cache-Control"] == "no-store"


def test_no_other_site_may_open_it(url: str, alice: User) -> None:
    answer = httpx2.get(url, cookies=cookies(alice), headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 401
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_only_asking_is_allowed_and_head_does_not_stay(url: str, alice: User) -> None:
    head = httpx2.head(url, cookies=cookies(alice))
    post = httpx2.post(url, cookies=cookies(alice))

    assert (head.status_code, head.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    assert head.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert post.status_code == 404


def test_of_many_streams_of_one_person_the_oldest_ends(url: str, alice: User, bob: User) -> None:
    with ExitStack() as stack:
        other = stack.enter_context(stream(url, bob))
        first, *rest = [stack.enter_context(stream(url, alice)) for _ in range(live.STREAMS)]
        for events in (other, first, *rest):
            assert events.next()["count"] == 0

        newest = stack.enter_context(stream(url, alice))

        assert newest.next()["count"] == 0
        assert first.next() == {"event": "end"}
        make_pending(principal_for(alice), action=Action(AUDIENCE, "run", {}))
        for events in (*rest, newest):
            assert events.next()["count"] == 1


def test_a_full_process_says_so(url: str, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "ALL_STREAMS", 0)

    assert httpx2.get(url, cookies=cookies(alice)).status_code == 503


def test_who_has_left_is_forgotten(url: str, alice: User) -> None:
    streams = live._streams
    assert streams is not None
    wait_until(lambda: not streams.of)  # those of the test before
    with stream(url, alice) as events:
        events.next()
        assert set(streams.of) == {alice.pk}
        (ended,) = streams.of[alice.pk]

    wait_until(lambda: not streams.of)

    assert not ended.is_set()

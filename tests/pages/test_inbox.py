"""The inbox and the history: what waits, the most urgent first, and what was settled."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.screen import check_value
from confirmhub.confirmations.states import Status, Verdict
from tests.confirmations.clock import make_overdue
from tests.factories import AUDIENCE, decide, make_pending, principal_for


def ask(agent: Principal, number: int, question: str = "Do it?") -> Confirmation:
    return make_pending(agent, action=Action(AUDIENCE, "do_it", {"number": number}), question=question)


def shown(*confirmations: Confirmation) -> dict[str, str]:
    return {"shown": " ".join(f"{row.id}:{bytes(row.view_digest).hex()}" for row in confirmations)}


def test_the_inbox_lists_what_waits_for_this_person_alone(
    browser: Client, stranger: Client, pending: Confirmation
) -> None:
    mine = browser.get("/").content.decode()
    theirs = stranger.get("/").content.decode()

    assert f'href="/confirm/{pending.id}"' in mine
    assert "Delete one file from reports?" in mine
    assert "delete_file" in mine
    assert f"until {pending.decide_by:%Y-%m-%d %H:%M:%S} UTC" in mine
    assert "Nothing waits for you" in theirs
    assert str(pending.id) not in theirs


def test_an_empty_inbox_promises_no_mail_and_links_to_how_one_is_told(browser: Client) -> None:
    html = browser.get("/").content.decode()
    lead = html.partition('<p class="lead">')[2].partition("</p>")[0]

    assert "mail" not in lead
    assert 'href="/account/notices"' in lead


def test_two_questions_of_one_kind_are_told_apart_by_their_arguments_and_check_values(
    browser: Client, agent: Principal, alice: User
) -> None:
    several = {"a": 1, "b": [True], "c": "x" * 200, "d": None, "e": "last"}
    waiting = [
        make_pending(agent, action=Action(AUDIENCE, "do_it", {"path": f"/srv/{name}\u202e", **several}))
        for name in ("one", "two")
    ]

    def shown_rows(path: str) -> tuple[str, str]:
        html = browser.get(path).content.decode()
        rows = [re.sub(r"<[^>]+>", "", row) for row in html.split("<li>")[1:]]
        return next(row for row in rows if checks[0] in row), next(row for row in rows if checks[1] in row)

    checks = [f"check value {check_value(row.view_digest)}" for row in waiting]
    for path in ("/", "/history"):
        rows = shown_rows(path)
        for row in rows:
            assert "a 1 b [true] c xxx" in row
            assert "more, sha256" in row
            assert "and 3 more" in row
        for row in waiting:
            if path == "/":
                decide(row, alice, Verdict.DENY)


def test_a_hostile_question_is_shown_with_its_marks(browser: Client, agent: Principal) -> None:
    ask(agent, 1, "Approve\u202e <b>now</b>?")

    html = browser.get("/").content.decode()

    assert "⟨U+202E⟩" in html
    assert "&lt;b&gt;now&lt;/b&gt;" in html
    assert "\u202e" not in html


def test_the_inbox_asks_as_often_for_many_rows_as_for_few(
    browser: Client, agent: Principal, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(20):
        ask(agent, number)

    with django_assert_max_num_queries(6):
        browser.get("/")


def test_all_of_one_requester_can_be_denied_at_once(
    browser: Client, agent: Principal, alice: User, pending: Confirmation
) -> None:
    second = ask(agent, 2)
    other = ask(principal_for(alice, client_id="https://other.example/client.json"), 3)
    html = browser.get("/").content.decode()
    assert html.count("Deny all 2 of") == 1
    assert str(other.id) not in html.partition('name="shown"')[2].partition(">")[0]

    browser.post("/deny-all", shown(pending, second))

    assert {row.status for row in Confirmation.objects.exclude(id=other.id)} == {Status.DENIED}
    other.refresh_from_db()
    assert other.status == Status.PENDING


def test_denying_all_leaves_alone_what_was_not_on_the_screen(
    browser: Client, stranger: Client, agent: Principal, alice: User, pending: Confirmation
) -> None:
    approved = decide(ask(agent, 2), alice)
    changed = {"shown": f"{pending.id}:{'0' * 64} " + shown(approved)["shown"]}

    assert browser.post("/deny-all", changed).status_code == 302
    assert stranger.post("/deny-all", shown(pending)).status_code == 302

    pending.refresh_from_db()
    approved.refresh_from_db()
    assert pending.status == Status.PENDING
    assert approved.status == Status.APPROVED


@pytest.mark.parametrize("wrong", ["", "x", "0" * 101, "00000000-0000-4000-8000-000000000000:" + "0" * 63])
def test_a_malformed_denial_of_all_is_refused(browser: Client, wrong: str) -> None:
    assert browser.post("/deny-all", {"shown": wrong}).status_code == 400


def test_a_link_denies_nothing(browser: Client, pending: Confirmation) -> None:
    assert browser.get("/deny-all", shown(pending)).status_code == 405


def test_nothing_approves_more_than_one_thing(browser: Client) -> None:
    assert browser.post("/approve-all").status_code == 404


def test_the_history_shows_what_became_of_each(browser: Client, agent: Principal, alice: User) -> None:
    denied = decide(ask(agent, 1, "One?"), alice, Verdict.DENY)
    late = make_overdue(ask(agent, 2, "Two?"), decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))
    ask(agent, 3, "Three?")

    html = browser.get("/history").content.decode()

    assert f'href="/confirm/{denied.id}"' in html
    assert '<span class="tag bad">Denied</span>' in html
    assert '<span class="tag ">Expired</span>' in html
    assert f"/confirm/{late.id}" not in html  # nobody decided on it in time: it has no page
    assert "Three?" not in html


def test_the_history_is_searched_in_questions_actions_and_arguments(
    browser: Client, agent: Principal, alice: User
) -> None:
    for number, text in enumerate(["kestrel", "heron"]):
        action = Action(AUDIENCE, "note", {"nest": {"birds": [text, number]}})
        decide(make_pending(agent, action=action, question=f"Note the {text}?"), alice)

    found = browser.get("/history", {"q": "KESTREL"}).content.decode()
    by_argument = browser.get("/history", {"q": "birds"}).content.decode()
    nothing = browser.get("/history", {"q": "<script>"}).content.decode()

    assert "Note the kestrel?" in found
    assert "Note the heron?" not in found
    assert by_argument.count("Note the") == 2
    assert "Nothing found" in nothing
    assert "<script>" not in nothing


def test_what_is_not_listed_is_spoken_of_only_where_there_is_such(
    browser: Client, agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        decide(ask(agent, number), alice)

    few = browser.get("/history").content.decode()
    monkeypatch.setattr("confirmhub.pages.views.HISTORY_ROWS", 2)
    many = browser.get("/history").content.decode()

    assert "the newest" not in few
    assert "There are more; these are the newest 2." in many
    assert many.count("<li>") == 2


def test_a_search_that_is_too_long_is_refused(browser: Client) -> None:
    assert browser.get("/history", {"q": "x" * 101}).status_code == 400

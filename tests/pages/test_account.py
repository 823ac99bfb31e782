"""Sign-in, sign-out, lockout and the change of a password."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import PASSWORD


@pytest.fixture
def nobody(db: None) -> Client:
    return Client(headers={"host": "localhost"})


@pytest.mark.parametrize(
    "path", ["/", "/history", "/password", "/confirm/00000000-0000-4000-8000-000000000000"]
)
def test_every_page_asks_for_the_sign_in_first(nobody: Client, path: str) -> None:
    response = nobody.get(path)

    assert response.status_code == 302
    assert response.headers["Location"] == f"/sign-in?next={path}"


def test_after_the_sign_in_the_page_that_was_wanted_comes(nobody: Client, alice: User) -> None:
    response = nobody.post(
        "/sign-in", {"username": "alice", "password": PASSWORD, "next": "/history"}, follow=True
    )

    assert response.redirect_chain == [("/history", 302)]
    assert "<strong>alice</strong>" in response.content.decode()


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "https:evil.example",
    ],
)
def test_no_other_host_is_gone_to_after_the_sign_in(nobody: Client, alice: User, elsewhere: str) -> None:
    response = nobody.post("/sign-in", {"username": "alice", "password": PASSWORD, "next": elsewhere})

    assert response.headers["Location"] == "/"


def test_a_wrong_password_says_so_and_shows_nothing_of_the_account(nobody: Client, alice: User) -> None:
    answers = [
        nobody.post("/sign-in", {"username": name, "password": "wrong"}).content.decode()
        for name in ("alice", "nobody")
    ]

    known, unknown = (re.sub(r'(csrfmiddlewaretoken" value=)"\w+"', r"\1", answer) for answer in answers)
    assert "That name and password do not match." in known
    assert known.replace('value="alice"', "") == unknown.replace('value="nobody"', "")


def test_a_wrong_password_leaves_the_name_in_its_field(nobody: Client, db: None) -> None:
    hostile = '"><script>alert(1)</script>'

    html = nobody.post("/sign-in", {"username": hostile, "password": "wrong"}).content.decode()

    assert 'value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"' in html
    assert "<script>" not in html


def test_the_page_that_follows_is_spoken_of_where_one_was_wanted(nobody: Client, db: None) -> None:
    first = nobody.get("/", follow=True).content.decode()
    other = nobody.get("/history", follow=True).content.decode()

    assert "To see what your agents ask of you." in first
    assert "Then the page that you came for opens" in other


def test_five_failures_close_the_name_for_a_while_the_right_password_included(
    nobody: Client, alice: User
) -> None:
    for _ in range(5):
        last = nobody.post("/sign-in", {"username": "alice", "password": "wrong"})

    right = nobody.post("/sign-in", {"username": "alice", "password": PASSWORD})

    assert last.status_code == 429
    assert right.status_code == 429
    assert "Too many failed sign-ins" in right.content.decode()


def test_signing_out_takes_a_post(browser: Client) -> None:
    assert browser.get("/sign-out").status_code == 405
    assert browser.get("/").status_code == 200

    assert browser.post("/sign-out").headers["Location"] == "/sign-in"
    assert browser.get("/").status_code == 302


def test_a_password_is_changed_with_the_old_one(nobody: Client, alice: User) -> None:
    nobody.force_login(alice)
    new = "a far longer pass phrase"
    fields = {"new_password1": new, "new_password2": new}

    wrong = nobody.post("/password", {"old_password": "wrong", **fields})
    weak = nobody.post(
        "/password", {"old_password": PASSWORD, "new_password1": "short", "new_password2": "short"}
    )
    right = nobody.post("/password", {"old_password": PASSWORD, **fields}, follow=True)

    alice.refresh_from_db()
    assert "problem" in wrong.content.decode()
    assert "at least 12 characters" in weak.content.decode()
    assert "Your password is changed" in right.content.decode()
    assert alice.check_password(new)

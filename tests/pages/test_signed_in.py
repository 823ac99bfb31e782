"""After the sign-in for a host: a page, since a form must not be followed by a redirect to elsewhere."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.test import Client

from tests.factories import PASSWORD


def test_the_way_to_a_hosts_request_goes_over_a_page(db: None, alice: User) -> None:
    browser = Client(headers={"host": "localhost"})
    wanted = "/oauth/authorize?client_id=a&scope=b"

    answer = browser.post("/sign-in", {"username": "alice", "password": PASSWORD, "next": wanted})

    assert answer.status_code == 200
    page = answer.content.decode()
    assert '<meta http-equiv="refresh" content="0; url=/oauth/authorize?client_id=a&amp;scope=b">' in page
    assert '<a class="button" href="/oauth/authorize?client_id=a&amp;scope=b">' in page
    assert browser.get("/").status_code == 200

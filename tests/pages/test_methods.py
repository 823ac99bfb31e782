"""Addresses that take a form alone say so to who comes there otherwise, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from confirmhub.confirmations.models import Confirmation
from confirmhub.notifications import urls as notices
from confirmhub.pages import urls

ID = "00000000-0000-4000-8000-000000000000"


def addresses() -> Iterator[str]:
    """Of every page for people, ours and that of their notices."""
    for pattern in (*urls.urlpatterns, *notices.urlpatterns):
        found = str(pattern.pattern)
        yield "/" + found.replace("<uuid:confirmation_id>", ID).replace("<int:number>", "1")


FOR_FORMS = {
    *("/try", f"/try/{ID}/spend", "/sign-out", "/deny-all", f"/confirm/{ID}/revoke"),
    *("/account/notices/add", "/account/notices/quiet", "/account/notices/1"),
}


def test_all_that_takes_a_form_alone_is_known(browser: Client) -> None:
    assert {path for path in addresses() if browser.get(path).status_code == 405} == FOR_FORMS


@pytest.mark.parametrize("path", sorted(FOR_FORMS))
def test_a_visit_is_answered_with_what_to_do(browser: Client, path: str) -> None:
    response = browser.get(path, headers={"accept": "text/html,*/*;q=0.8"})

    html = response.content.decode()
    assert response.status_code == 405
    assert "POST" in response.headers["Allow"]
    assert "There is no page at this address" in html
    assert "Nothing was changed." in html
    assert (f'href="/confirm/{ID}"' in html) == (ID in path)
    assert ('class="button main" href="/account/notices"' in html) == ("notices" in path)
    assert 'href="/">To what waits for you' in html


def test_who_is_not_signed_in_gets_words_too(db: None) -> None:
    response = Client(headers={"host": "localhost"}).get("/sign-out")

    assert response.status_code == 405
    assert "There is no page at this address" in response.content.decode()


def test_another_method_on_a_page_changes_nothing(browser: Client, pending: Confirmation) -> None:
    response = browser.delete(f"/confirm/{pending.id}")

    assert response.status_code == 405
    assert f'href="/confirm/{pending.id}"' in response.content.decode()
    assert Confirmation.objects.get().status == "pending"


def test_a_program_gets_no_page(browser: Client) -> None:
    response = browser.get("/try", headers={"accept": "application/json"})

    assert response.status_code == 405
    assert response.content == b""


def test_the_icon_is_where_browsers_look_for_one(db: None) -> None:
    response = Client(headers={"host": "localhost"}).get("/favicon.ico")

    assert response.status_code == 302
    assert response.headers["Location"] == "/static/confirmhub/icon.svg"

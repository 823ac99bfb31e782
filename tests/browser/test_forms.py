"""What reaches the server past the page: a form again, one from elsewhere, or a program with a token."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import APIResponse, Page, expect

from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Decision, Event
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status
from tests.bridge.hosts import make_token
from tests.browser.cases import answers
from tests.browser.conftest import OpenPage
from tests.factories import AUDIENCE, make_pending, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pending(agent: Principal) -> Confirmation:
    return make_pending(agent, question="Delete one file?")


def sent(page: Page, press: str) -> dict[str, str]:
    """Press a button and return the form that the browser sent for it."""
    expect(page.locator("form.still")).to_have_count(0)
    with page.expect_request(lambda request: request.method == "POST") as asked:
        page.get_by_role("button", name=press).click()
    form = asked.value.post_data_json
    page.wait_for_load_state()
    return dict(form)


def send_again(page: Page, url: str, form: dict[str, str], **headers: str) -> APIResponse:
    """The same form once more, with the cookies of the browser but past its page."""
    own = {"Content-Type": "application/x-www-form-urlencoded", "Origin": page.url.split("/confirm")[0]}
    return page.request.post(url, headers=own | headers, data=urlencode(form), max_redirects=0)


def test_a_replayed_form_decides_nothing_again(
    open_page: OpenPage, alice: User, pending: Confirmation
) -> None:
    page = open_page(f"/confirm/{pending.id}", as_=alice)
    form = sent(page, "Deny")
    before = Event.objects.count()

    same = send_again(page, page.url, form)
    other = send_again(page, page.url, form | {"verdict": "approve"})

    assert (same.status, same.headers["location"]) == (302, f"/confirm/{pending.id}")
    assert other.status == 409
    assert "This was decided before" in other.text()
    pending.refresh_from_db()
    assert pending.status == Status.DENIED
    assert (Decision.objects.count(), Event.objects.count()) == (1, before)


def test_a_form_decides_on_nothing_but_what_was_on_its_page(
    open_page: OpenPage, alice: User, agent: Principal, pending: Confirmation
) -> None:
    other = make_pending(agent, action=Action(AUDIENCE, "run", {"command": "rm -rf /"}))
    page = open_page(f"/confirm/{pending.id}", as_=alice)
    form = sent(page, "Approve once")

    answer = send_again(page, page.url.replace(str(pending.id), str(other.id)), form)

    assert answer.status == 409
    assert "What you saw is not what this asks for" in answer.text()
    other.refresh_from_db()
    assert other.status == Status.PENDING


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_a_form_of_another_site_is_refused(
    open_page: OpenPage, alice: User, agent: Principal, pending: Confirmation, origin: str
) -> None:
    other = make_pending(agent, action=Action(AUDIENCE, "run", {}))
    page = open_page(f"/confirm/{pending.id}", as_=alice)
    form = sent(page, "Deny") | {"digest_shown": bytes(other.view_digest).hex(), "verdict": "approve"}

    answer = send_again(page, page.url.replace(str(pending.id), str(other.id)), form, Origin=origin)

    assert answer.status == 403
    other.refresh_from_db()
    assert other.status == Status.PENDING


def test_a_program_with_a_token_cannot_decide(
    open_page: OpenPage, alice: User, pending: Confirmation, server: str
) -> None:
    token = make_token(alice, resource=f"{server}/mcp")
    page = open_page("/sign-in")
    csrf = page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    form = {
        "csrfmiddlewaretoken": csrf,
        "verdict": "approve",
        "digest_shown": bytes(pending.view_digest).hex(),
        "reason": "",
    }
    url = f"{server}/confirm/{pending.id}"
    bearer = {"Authorization": f"Bearer {token}", "Origin": server}

    api = page.request.get(url.replace("/confirm", "/api/v1/confirmations"), headers=bearer)
    look = page.request.get(url, headers=bearer, max_redirects=0)
    decision = send_again(page, url, form, **bearer)

    assert api.status == 200  # the token is a good one
    assert (look.status, decision.status) == (302, 302)
    assert decision.headers["location"] == f"/sign-in?next=/confirm/{pending.id}"
    pending.refresh_from_db()
    assert pending.status == Status.PENDING


@answers("page-08")
def test_who_may_see_everything_may_not_decide_on_everything(
    open_page: OpenPage, alice: User, pending: Confirmation, server: str
) -> None:
    admin = make_user("admin", is_staff=True, is_superuser=True)
    page = open_page("/", as_=admin)

    answer = page.request.get(f"{server}/confirm/{pending.id}")

    assert answer.status == 404
    assert "Delete one file?" not in answer.text()
    queue = page.request.get(f"{server}/admin/confirmations/confirmation/{pending.id}/change/")
    assert "Delete one file?" in queue.text()

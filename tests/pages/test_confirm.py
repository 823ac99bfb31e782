"""The confirm page: it shows all that would run, and a decision is one POST from it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from confirmhub.confirmations.actions import Action, Json
from confirmhub.confirmations.models import Confirmation, Decision, Event
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.screen import MAX_ROWS
from confirmhub.confirmations.states import Status, Verdict
from tests.confirmations.clock import make_overdue
from tests.factories import AUDIENCE, decide, make_pending

type Form = Callable[..., dict[str, str]]


def url(confirmation: Confirmation) -> str:
    return f"/confirm/{confirmation.id}"


def page(browser: Client, confirmation: Confirmation) -> str:
    response = browser.get(url(confirmation))
    assert response.status_code == 200
    return response.content.decode()


def make_late(confirmation: Confirmation) -> Confirmation:
    return make_overdue(confirmation, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))


def test_the_page_says_who_asks_for_what_about_what_and_until_when(
    browser: Client, pending: Confirmation
) -> None:
    html = page(browser, pending)

    digest = bytes(pending.view_digest).hex()
    until = f"{pending.decide_by:%Y-%m-%d %H:%M:%S} UTC"
    for said in (
        "Delete one file from reports?",
        "asks on your behalf",
        "host not verified",
        "delete_file",
        ">path</bdi> <small>text</small>",
        ">recursive</bdi> <small>true or false</small>",
        ">false</bdi>",
        "2 413 568 bytes",
        "If this changes before the yes is used, nothing is done.",
        "its own words, not checked",
        "Removing an outdated copy.",
        f"until {until}",
        f"Check value <code>{digest[:4]} {digest[4:8]}</code>. If the chat shows another, deny.",
        f'value="{digest}"',
        "within 5 minutes of the yes",
        "<strong>alice</strong>",
    ):
        assert said in html


def test_where_no_author_wrote_a_question_its_title_names_the_action(
    browser: Client, agent: Principal
) -> None:
    asked = make_pending(agent, action=Action(AUDIENCE, "payments.transfer", {}))

    for path in ("/", f"/confirm/{asked.id}"):
        assert "Allow payments.transfer once?" in re.sub("<[^>]+>", "", browser.get(path).content.decode())


def test_a_hidden_character_is_a_mark_with_its_name(browser: Client, pending: Confirmation) -> None:
    html = page(browser, pending)

    mark = '<span class="cp" title="U+202E RIGHT-TO-LEFT OVERRIDE" dir="ltr">⟨U+202E⟩</span>'
    assert f"/srv/reports/Q3-{mark}fdp.exe" in html
    assert "\u202e" not in html
    assert '<p class="flag warn">' in html


def test_a_line_feed_in_a_name_stands_there_as_a_mark(browser: Client, agent: Principal) -> None:
    action = Action(AUDIENCE, "run", {"pa\nth": 1})

    html = page(browser, make_pending(agent, action=action))

    mark = '<span class="cp" title="U+000A LINE FEED" dir="ltr">⟨U+000A⟩</span>'
    assert f"pa{mark}th" in html
    assert "1 line break: U+000A LINE FEED, at character 3." in html


def test_as_many_rows_as_are_let_in_are_all_there(browser: Client, agent: Principal) -> None:
    lines, items = "\n".join(f"{number:x}" for number in range(300)), MAX_ROWS - 2 * 300 - 1
    arguments: dict[str, Json] = {"a": lines, "b": lines, "items": [*range(items)]}

    html = page(browser, make_pending(agent, action=Action(AUDIENCE, "run", arguments)))

    assert html.count("<li><bdi class=") == 2 * 300
    assert html.count("<dt ") == len(arguments) + items
    assert f">{items - 1}</bdi>" in html


def test_markup_in_a_value_is_text(browser: Client, agent: Principal) -> None:
    hostile = "</bdi><script>alert(1)</script>'\"&amp;"
    action = Action(
        audience=AUDIENCE, name="run", arguments={hostile: hostile, "link": "https://evil.example"}
    )

    html = page(browser, make_pending(agent, action=action, summary=hostile))

    assert html.count("<script") == 1  # our own
    assert html.count("&lt;/bdi&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#x27;&quot;&amp;amp;") == 3
    assert 'href="https://evil' not in html


def test_nested_arguments_are_shown_with_every_key_type_and_place(browser: Client, agent: Principal) -> None:
    arguments = {
        "to": ["a@example.org", "b@example.org"],
        "options": {"retry": None, "limits": {}, "none": []},
        "body": "one\n\n two",
        "rate": 1.0,
        "": "x",
    }

    html = page(browser, make_pending(agent, action=Action(AUDIENCE, "send", arguments)))

    for said in (
        "a list of 2",
        '<span class="nth">no. 2</span> <small>text</small>',
        "a group of 3",
        "an empty group",
        "an empty list",
        ">null</bdi>",
        '<li><bdi class="v" dir="ltr">one</bdi></li><li><bdi class="v" dir="ltr"></bdi></li>',
        ">1.0</bdi>",
        "⟨empty⟩",
    ):
        assert said in html


def test_looking_changes_nothing(browser: Client, pending: Confirmation) -> None:
    before = Event.objects.count()

    browser.get(url(pending))
    browser.head(url(pending))
    browser.get(f"{url(pending)}?verdict=approve&digest_shown={bytes(pending.view_digest).hex()}")

    pending.refresh_from_db()
    assert pending.status == Status.PENDING
    assert Event.objects.count() == before


@pytest.mark.parametrize(
    ("verdict", "status", "stamp"), [("approve", "approved", "Approved"), ("deny", "denied", "Denied")]
)
def test_a_decision_is_recorded_and_the_receipt_shown(  # noqa: PLR0917 - fixtures and parameters
    browser: Client, pending: Confirmation, form: Form, verdict: str, status: str, stamp: str
) -> None:
    response = browser.post(url(pending), form(verdict, reason="as agreed"), follow=True)

    pending.refresh_from_db()
    assert pending.status == status
    assert pending.decisions.get().reason == "as agreed"
    html = response.content.decode()
    assert f"<b>{stamp}</b>" in html
    assert "as agreed" in html
    assert "Checked just now: all are in place." in html


def test_the_same_form_again_is_answered_with_the_receipt(
    browser: Client, pending: Confirmation, form: Form
) -> None:
    browser.post(url(pending), form())

    response = browser.post(url(pending), form())

    assert response.status_code == 302
    assert response.headers["Location"] == url(pending)
    assert Decision.objects.count() == 1


def test_another_verdict_after_the_decision_is_refused(
    browser: Client, pending: Confirmation, form: Form
) -> None:
    browser.post(url(pending), form("deny"))

    response = browser.post(url(pending), form("approve"))

    pending.refresh_from_db()
    assert response.status_code == 409
    assert "This was decided before" in response.content.decode()
    assert pending.status == Status.DENIED


def test_a_digest_that_was_not_on_the_screen_is_refused(
    browser: Client, pending: Confirmation, form: Form
) -> None:
    response = browser.post(url(pending), form(digest_shown="0" * 64))

    pending.refresh_from_db()
    assert response.status_code == 409
    assert "What you saw is not what this asks for" in response.content.decode()
    assert pending.status == Status.PENDING


@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": "yes"},
        {"verdict": ""},
        {"digest_shown": ""},
        {"digest_shown": "7F" * 32},
        {"digest_shown": "0" * 63},
        {"reason": "x" * 281},
        {"reason": "\x00"},
    ],
)
def test_a_malformed_form_is_refused(
    browser: Client, pending: Confirmation, form: Form, wrong: dict[str, str]
) -> None:
    response = browser.post(url(pending), form(**wrong) if "verdict" not in wrong else {**form(), **wrong})

    pending.refresh_from_db()
    assert response.status_code == 400
    assert "Nothing was changed" in response.content.decode()
    assert pending.status == Status.PENDING


def test_unknown_not_yours_and_too_late_read_the_same(
    browser: Client, stranger: Client, agent: Principal, pending: Confirmation, form: Form
) -> None:
    late = make_late(make_pending(agent, action=Action(AUDIENCE, "late", {})))
    unknown = "/confirm/00000000-0000-4000-8000-000000000000"
    late_form = form(digest_shown=bytes(late.view_digest).hex())

    answers = [
        browser.get(unknown),
        browser.get(url(late)),
        browser.post(unknown, form()),
        browser.post(url(late), late_form),
        stranger.get(url(pending)),
        stranger.post(url(pending), form()),
    ]

    assert {answer.status_code for answer in answers} == {404}
    wordings = {answer.content.decode().partition("<main")[2].partition("</main>")[0] for answer in answers}
    assert len(wordings) == 1
    assert pending.status == Status.PENDING
    assert Decision.objects.count() == 0


@pytest.mark.parametrize("state", [Verdict.APPROVE, Verdict.DENY])
def test_a_receipt_is_for_its_people_alone(
    stranger: Client, alice: User, pending: Confirmation, state: Verdict
) -> None:
    decide(pending, alice, state)

    assert stranger.get(url(pending)).status_code == 404


def test_without_a_sign_in_a_decision_is_not_carried_through(
    alice: User, pending: Confirmation, form: Form
) -> None:
    nobody = Client(headers={"host": "localhost"})

    response = nobody.post(url(pending), form())

    pending.refresh_from_db()
    assert response.status_code == 302
    assert response.headers["Location"] == f"/sign-in?next={url(pending)}"
    assert pending.status == Status.PENDING


def test_a_bearer_token_opens_no_page(pending: Confirmation, form: Form) -> None:
    program = Client(headers={"host": "localhost", "authorization": "Bearer 0123456789abcdef"})

    assert program.get(url(pending)).status_code == 302
    assert program.post(url(pending), form()).status_code == 302
    pending.refresh_from_db()
    assert pending.status == Status.PENDING


@pytest.mark.parametrize(
    "headers", [{}, {"origin": "https://evil.example"}, {"origin": "null"}], ids=["no-token", "other", "null"]
)
def test_a_form_from_elsewhere_is_refused(
    alice: User, pending: Confirmation, form: Form, headers: dict[str, str]
) -> None:
    browser = Client(enforce_csrf_checks=True, headers={"host": "localhost"} | headers)
    browser.force_login(alice)

    response = browser.post(url(pending), form())

    pending.refresh_from_db()
    assert response.status_code == 403
    assert "That form is out of date" in response.content.decode()
    assert pending.status == Status.PENDING


@pytest.mark.parametrize(
    "link", ["x", "01a22d56-3de7-7e4c-a58b-9cb3d664a02", "01a22d56-3de7-7e4c-a58b-9cb3d664a021.", "\u202e"]
)
def test_a_damaged_link_is_called_one(browser: Client, link: str) -> None:
    response = browser.get(f"/confirm/{link}")

    assert response.status_code == 400
    assert "if you came here by a link, the link is damaged" in response.content.decode()


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_other_methods_are_refused(browser: Client, pending: Confirmation, method: str) -> None:
    assert getattr(browser, method)(url(pending)).status_code == 405


def test_typographic_signs_are_told_of_with_the_exact_text_alone(browser: Client, agent: Principal) -> None:
    typeset = "\u201cQ3\u201d \u2013 final\u2026"
    action = Action(AUDIENCE, "run", {typeset: typeset})
    confirmation = make_pending(agent, action=action, summary=typeset, question=typeset)

    html = browser.get(f"/confirm/{confirmation.id}").content.decode()

    assert '<p class="flag' not in html
    exact = re.findall(r'<details class="exact"><summary>([^<]*)</summary>(.*?)</details>', html)
    assert len(exact) == 4
    for summary, details in exact:
        assert summary.endswith(" typographic signs")
        assert "U+2013 EN DASH looks like" in details

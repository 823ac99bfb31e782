"""The dashboard: for who may see confirmations, in words and figures, with charts that our policy allows."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from playwright.sync_api import expect

from confirmhub.confirmations import errors, figures, outbox
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Verdict
from confirmhub.review import charts, dashboard
from tests.browser import axe
from tests.browser.conftest import OpenPage
from tests.browser.looks import scrolls_sideways
from tests.confirmations.clock import make_overdue
from tests.factories import AUDIENCE, decide, make_approved, make_pending, make_user, principal_for, redeem
from tests.review.people import signed_in

PATH = "/admin/dashboard"
RANGES = ("hour", "day", "week", "month")
LOOKS = [("light", 1280), ("dark", 390)]


def run(number: int) -> Action:
    return Action(AUDIENCE, "run", {"number": number})


@pytest.fixture
def decided(agent: Principal, alice: User) -> None:
    """Six decisions within a moment: five yes, one no."""
    for number in range(6):
        decide(make_pending(agent, action=run(number)), alice, Verdict.APPROVE if number else Verdict.DENY)


@pytest.fixture
def all_kinds(agent: Principal, alice: User, decided: None) -> None:
    """One of each thing that goes wrong."""
    spent = make_approved(agent, alice)
    redeem(spent, agent)
    for key in ("another", "a third"):
        with pytest.raises(errors.ConfirmationError):
            redeem(spent, agent, key=key.replace(" ", "-"))
    make_overdue(spent, redeemed_at=Now() - dt.timedelta(minutes=3))
    make_pending(agent, action=Action(AUDIENCE, "w" * 90, {}))
    for notice in outbox.lease_notices(limit=100, lease=dt.timedelta(minutes=1), lane=outbox.Lane.MAIL):
        outbox.mark_failed(notice_id=notice.id, retry_in=dt.timedelta(), give_up_after=1)
    over = make_pending(agent, action=Action(AUDIENCE, "over", {}))
    ago = Now() - dt.timedelta(minutes=1)
    make_overdue(over, requested_at=Now() - dt.timedelta(minutes=9), decide_by=ago)


def tiles(html: str) -> dict[str, str]:
    """The figure of each tile, by its label."""
    found = re.findall(r"<dt>(?:<a [^>]*>)?([^<]+)(?:</a>)?</dt><dd><b>([^<]*)</b>", html)
    assert found
    return dict(found)


def lines(html: str, table: str) -> list[list[str]]:
    """The texts of each line of a table."""
    [body] = re.findall(rf'aria-labelledby="{table}">\s*<table>.*?<tbody>(.*?)</tbody>', html, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [[text.strip() for text in re.findall(r">([^<>]+)<", row) if text.strip()] for row in rows]


@pytest.mark.parametrize("who", ["onlooker", "operator", "auditor", "administrator", "root"])
def test_who_may_see_confirmations_sees_it_and_finds_it(who: str, request: pytest.FixtureRequest) -> None:
    client: Client = request.getfixturevalue(who)

    assert client.get(PATH).status_code == 200
    assert f'href="{PATH}"' in client.get("/admin/").content.decode()


def test_nobody_else_does(db: None) -> None:
    clerk = signed_in(make_user("clerk", is_staff=True))

    assert clerk.get(PATH).status_code == 403
    assert PATH not in clerk.get("/admin/").content.decode()
    assert signed_in(make_user("visitor")).get(PATH, follow=True).status_code == 403
    away = Client(headers={"host": "localhost"}).get(PATH, follow=True)
    assert away.redirect_chain[-1] == (f"/sign-in?next={PATH}", 302)


@pytest.mark.parametrize("value", ["year", "", "hour ", "1; DROP TABLE"])
def test_a_range_that_is_not_offered_is_refused(onlooker: Client, value: str) -> None:
    assert onlooker.get(PATH, {"range": value}).status_code == 400


def test_it_is_read_alone(onlooker: Client) -> None:
    assert onlooker.post(PATH).status_code in (403, 405)
    assert onlooker.head(PATH).status_code == 200


@pytest.mark.parametrize("range_", RANGES)
def test_an_empty_hub_has_an_empty_dashboard(onlooker: Client, range_: str) -> None:
    html = onlooker.get(PATH, {"range": range_}).content.decode()

    assert set(tiles(html).values()) == {"0"}
    assert "<svg class=" not in html
    assert html.count("None in this time.") == 4
    assert html.count('aria-current="true">') == 2  # the range, and the review in the bar


@pytest.mark.django_db(transaction=True)
def test_the_figures_are_those_of_the_record(onlooker: Client, all_kinds: None) -> None:
    html = onlooker.get(PATH, {"range": "hour"}).content.decode()

    shown = tiles(html)
    assert shown.pop("Median time to decide").endswith(" s")
    assert shown == {
        "Waiting now": "1",
        "Decided": "7",
        "Approved in under 5 s": "100 %",
        "Expired, nobody decided": "1",
        "Refused redemptions": "2",
        "Outcome unknown now": "1",
        "Notices given up": str(figures.count(during=an_hour(), reports_within=dt.timedelta()).given_up),
    }
    assert lines(html, "refusals") == [["spent before: a replay", "2"]]
    assert lines(html, "actions")[0][:4] == ["run", "6", "83 %", "100 %"]
    assert lines(html, "bands")[0] == ["under 5 s", "7", "100 %"]
    times = lines(html, "time")
    assert sum(int(yes) for _, yes, _ in times) == 6
    assert sum(int(no) for _, _, no in times) == 1


@pytest.mark.django_db(transaction=True)
def test_beside_each_figure_stands_what_it_is_of(onlooker: Client, all_kinds: None) -> None:
    html = onlooker.get(PATH, {"range": "hour"}).content.decode()

    said = notes(html)
    for label, of_what in {
        "Waiting now": r"\d+ s",
        "Decided": r"\d\.\d an hour.*86 %",
        "Median time to decide": "question",
        "Approved in under 5 s": r"\b6$",
        "Expired, nobody decided": r"\b1\b",
        "Refused redemptions": "at most ten",
        "Outcome unknown now": "what came of it",
        "Notices given up": "tried",
    }.items():
        assert re.search(of_what, said.pop(label)), label
    assert said == {}
    opened, allowed = re.findall(r'<p class="hint">([^<]*)</p>', html)
    assert "not recorded" in opened  # when somebody opened the page
    assert "a rule can allow it" in allowed


def test_a_table_that_is_cut_says_of_how_much(
    onlooker: Client, decided: None, agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        decide(make_pending(agent, action=Action(AUDIENCE, f"other.{number}", {})), alice)
    monkeypatch.setattr(dashboard, "SHOWN", 1)

    html = onlooker.get(PATH).content.decode()

    assert len(lines(html, "actions")) == 1
    assert "a rule can allow it. And 2 more." in html


def notes(html: str) -> dict[str, str]:
    """What each tile says of its figure, by its label."""
    found = re.findall(r"<dt>(?:<a [^>]*>)?([^<]+)(?:</a>)?</dt><dd><b>[^<]*</b> <span>([^<]*)</span>", html)
    return dict(found)


def an_hour() -> figures.Span:
    return figures.span(within=dt.timedelta(hours=1), step=dt.timedelta(minutes=5))


def test_who_approves_everything_at_once_is_pointed_out(
    onlooker: Client, agent: Principal, alice: User, bob: User, decided: None
) -> None:
    slow = principal_for(bob)
    for number in range(6):
        asked = make_overdue(
            make_pending(slow, action=run(number)), requested_at=Now() - dt.timedelta(minutes=2)
        )
        decide(asked, bob)

    hasty, careful = lines(onlooker.get(PATH).content.decode(), "approvers")

    assert hasty[:2] == ["alice", "mostly in under 5 s"]
    assert hasty[2:5] == ["6", "83 %", "100 %"]
    assert careful == ["bob", "6", "100 %", "0 %", "2.0 min"]


def test_names_from_outside_are_shown_with_their_marks(onlooker: Client) -> None:
    hostile = "a\u202eb<script>"
    person = make_user(hostile)
    decide(make_pending(Principal("<script>", str(person.pk))), person)

    html = onlooker.get(PATH).content.decode()

    assert lines(html, "approvers")[0][0] == "a⟨U+202E⟩b&lt;script&gt;"
    assert lines(html, "requesters")[0][0] == "&lt;script&gt;"
    assert "\u202e" not in html
    assert "<script>" not in html


def test_estimates_are_said_to_be_estimates(
    onlooker: Client, decided: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = onlooker.get(PATH).content.decode()
    monkeypatch.setattr(figures, "LOOKED_AT", 3)

    html = onlooker.get(PATH).content.decode()

    assert "estimates" not in exact
    assert (
        "Of the decisions, one in 2 was looked at, evenly over the whole time. Their figures are estimates: "
        "all together are good to a few in 100, one person, action or bar can be off by a fifth, and who "
        "decided seldom may be missing."
    ) in html
    assert tiles(html)["Decided"].startswith("about ")


def test_what_is_counted_up_to_the_bound_says_so(
    onlooker: Client, agent: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "COUNTED", 2)
    for number in range(3):
        make_pending(agent, action=run(number))

    assert tiles(onlooker.get(PATH).content.decode())["Waiting now"] == "2+"


def test_a_chart_holds_shapes_and_texts_alone() -> None:
    svg = charts.bars(title='a "title" <', series={"x": [1, 2], "y<": [0, 3]}, labels=["<script>", "two"])

    assert set(re.findall(r"<(\w+)", svg)) == {"svg", "g", "path", "rect", "text"}
    assert set(re.findall(r'\s([\w:-]+)="', svg)) <= charts.ATTRIBUTES | {"role", "aria-label", "xmlns"}
    assert svg.count('class="bar"') == 4
    assert "&lt;script&gt;" in svg


@pytest.mark.parametrize(
    ("top", "found"),
    [
        (1, [0, 1]),
        (5, [0, 1, 2, 3, 4, 5]),
        (7, [0, 2, 4, 6, 8]),
        (940, [0, 200, 400, 600, 800, 1000]),
    ],
)
def test_an_axis_has_round_numbers(top: int, found: list[int]) -> None:
    assert charts.ticks(top) == found


def test_every_band_has_its_words() -> None:
    assert len(dashboard.BANDS) == len(figures.BANDS) + 1


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [(0, 0, "-"), (0, 9, "0 %"), (1, 999, "<1 %"), (1, 2, "50 %"), (998, 999, ">99 %"), (9, 9, "100 %")],
)
def test_a_share_is_never_rounded_to_none_or_all(part: int, whole: int, said: str) -> None:
    assert dashboard._share(part, whole) == said


@pytest.mark.django_db(transaction=True)
def test_it_is_readable_within_the_screen_and_clean_in_a_browser(
    open_page: OpenPage, otto: User, all_kinds: None
) -> None:
    """What breaks the policy stands in the console, which `open_page` watches."""
    program = axe.source()
    page = open_page(PATH, as_=otto)
    inks = set()

    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        assert axe.violations(page, program=program) == [], f"{scheme}, {width} pixels"
        assert not scrolls_sideways(page), f"{width} pixels"
        bar = page.locator(".time .serie-0 rect").last
        assert bar.evaluate("bar => bar.getBoundingClientRect().height") > 50
        inks.add(bar.evaluate("bar => getComputedStyle(bar).fill"))
    assert len(inks) == 2  # another in the dark

    page.get_by_role("navigation", name="Range").get_by_role("link", name="30 days").click()
    expect(page.get_by_role("heading", name="Decided per day")).to_be_visible()
    page.get_by_role("link", name="Outcome unknown now").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    assert Confirmation.objects.filter(status="redeemed").count() == 1

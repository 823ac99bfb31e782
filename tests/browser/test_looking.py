"""What a browser makes of the pages: whole at every width, true to hostile values, silent elsewhere."""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, Route, expect
from pytest_django import Settings

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import MAX_BYTES, Action, Observation
from confirmhub.confirmations.errors import InvalidAction
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status
from tests.browser.cases import answers
from tests.browser.conftest import OpenPage, Watch
from tests.browser.looks import scrolls_sideways
from tests.factories import AUDIENCE, decide, make_pending

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = {
    "override": "/srv/a\u202ecod.exe",
    "ended isolate": "x\u2069\u202eabc",
    "zero width": "bru\u200bsh",
    "breaks": "safe" + "\n" * 12 + "rm -rf /",
    "terminal": "\x1b[2K\x1b[1A/tmp/safe",
    "stacked": "a" + "\u0335" * 3 + "Z\u0351\u0352\u0353" * 40,
    "wide": "W" * 900,
    "markup": "</bdi></dd></dl><h1>Approved</h1><script>alert(1)</script><img src=https://evil.example/x>",
    "address": "javascript:alert(1) https://evil.example/?q=1",
    "typed mark": "⟨U+200B⟩",
    "\u202eyek": "in the key",
}


# Where each of these letters, in their order in the text, begins on the screen.
LEFT_EDGES = """(box, letters) => {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT), found = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode())
        for (let at = 0; at < node.data.length; at++)
            if (node.data[at] === letters[found.length]) {
                const range = document.createRange();
                range.setStart(node, at);
                range.setEnd(node, at + 1);
                found.push(range.getBoundingClientRect().left);
            }
    return found;
}"""


# Boxes that hide a part of what they hold, or that stand out of the sheet.
CUT = """boxes => boxes.filter(box => {
    const {left, right} = box.getBoundingClientRect(), sheet = box.closest(".sheet").getBoundingClientRect();
    return box.scrollWidth > box.clientWidth || left < sheet.left || right > sheet.right;
}).map(box => box.textContent)"""


def make_hostile(agent: Principal) -> Confirmation:
    return make_pending(
        agent,
        action=Action(AUDIENCE, "run", HOSTILE),
        summary="Approve\u202e this <b>now</b>\u2069\u202e",
        question="Run it?",
    )


@pytest.mark.parametrize("width", [1280, 390, 320], ids=["desktop", "phone", "400-percent"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hostile_request_stays_in_its_boxes(
    open_page: OpenPage, alice: User, agent: Principal, width: int, scheme: str
) -> None:
    confirmation = make_hostile(agent)

    page = open_page(
        f"/confirm/{confirmation.id}",
        as_=alice,
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
    )

    assert not scrolls_sideways(page)
    assert page.locator(".sheet .v").evaluate_all(CUT) == []
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator("main img, main iframe, main a[href^='http']")).to_have_count(0)
    text = page.locator("main").inner_text()
    assert not set(text) & set("\u202e\u2069\u200b\x1b")
    for button in ("Deny", "Approve once"):
        box = page.get_by_role("button", name=button).bounding_box()
        assert box is not None
        assert box["height"] >= 44


def test_a_mark_cannot_be_typed(open_page: OpenPage, alice: User, agent: Principal) -> None:
    page = open_page(f"/confirm/{make_hostile(agent).id}", as_=alice)

    real = page.locator("dt:has-text('zero width') + dd .v")
    typed = page.locator("dt:has-text('typed mark') + dd .v")

    assert real.inner_text() == "bru⟨U+200B⟩sh"
    expect(real.locator(".cp")).to_have_attribute("title", "U+200B ZERO WIDTH SPACE")
    assert typed.inner_text() == "⟨U+27E8⟩U+200B⟨U+27E9⟩"


@pytest.mark.parametrize(("first", "second"), [("א", "ב"), ("\u200fא", "בx"), ("س", "م"), ("א1", "2ב")])
def test_parts_of_a_path_keep_their_places(
    open_page: OpenPage, alice: User, agent: Principal, first: str, second: str
) -> None:
    action = Action(AUDIENCE, "run", {"path": f"/{first}/{second}/c"})
    page = open_page(f"/confirm/{make_pending(agent, action=action).id}", as_=alice)

    letters = ["/", first.strip("\u200f1"), "/", second.strip("2x"), "/", "c"]
    lefts = page.locator("dd .v").first.evaluate(LEFT_EDGES, letters)

    assert lefts == sorted(lefts)
    assert len(set(lefts)) == len(letters)


@answers("page-01")
@pytest.mark.parametrize(("zone", "offset"), [("UTC", ""), ("Asia/Kolkata", "+05:30")])
def test_the_end_is_shown_with_its_zone_and_counted_down(  # noqa: PLR0917 - fixtures and parameters
    open_page: OpenPage, alice: User, agent: Principal, settings: Settings, zone: str, offset: str
) -> None:
    settings.TIME_ZONE = zone
    confirmation = make_pending(agent)
    end = confirmation.decide_by.astimezone(ZoneInfo(zone))
    page = open_page("/history", as_=alice)
    page.clock.install()
    page.goto(page.url.replace("/history", f"/confirm/{confirmation.id}"))
    left = page.locator(".due b")
    expect(left).to_have_text(re.compile(r"^(9 min \d+ s|10 min)$"))

    page.clock.run_for(dt.timedelta(minutes=5).total_seconds() * 1000)

    expect(left).to_have_text(re.compile(r"^(4 min \d+ s|5 min)$"))
    until = page.locator(".due time")
    expect(until).to_have_text(f"until {end:%Y-%m-%d %H:%M:%S} {offset or 'UTC'}")
    expect(until).to_have_attribute("datetime", f"{end:%Y-%m-%dT%H:%M:%S}{offset or '+00:00'}")


def as_large_as_they_may_be(text: str) -> list[str]:
    """Values of this text that take, as the argument `items`, exactly the bytes that are let in."""
    empty, each = len('{"items":[]}'), len(text.encode()) + len('"",')
    count, rest = divmod(MAX_BYTES - empty, each)
    return [text] * (count - 1) + [text + "x" * (rest + 1)]  # and no comma after the last


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_900,
        "Gr\u00fc\u00dfe an \u6771\u4eac, \u05e9\u05dc\u05d5\u05dd \U0001f600. " * 30,
        "\u20ac" * 900,
    ],
    ids=["ascii", "many-scripts", "three-bytes-each"],
)
def test_arguments_as_large_as_they_may_be_are_shown_whole_and_approved(
    open_page: OpenPage, alice: User, agent: Principal, text: str
) -> None:
    items = as_large_as_they_may_be(text.rstrip())
    with pytest.raises(InvalidAction, match=str(MAX_BYTES)):
        Action(AUDIENCE, "run", {"items": [*items[:-1], items[-1] + "x"]})
    confirmation = make_pending(agent, action=Action(AUDIENCE, "run", {"items": items}))

    page = open_page(f"/confirm/{confirmation.id}", as_=alice, viewport={"width": 390, "height": 800})

    assert not scrolls_sideways(page)
    assert page.locator("dd > .v").all_inner_texts() == items
    expect(page.locator("form[data-deliberate]")).not_to_have_class("still")
    page.get_by_role("button", name="Approve once").click()
    expect(page.locator(".stamp b")).to_have_text("Approved")
    assert page.locator("dl:not(.facts) dd > .v").all_inner_texts() == items
    confirmation.refresh_from_db()
    assert confirmation.status == Status.APPROVED


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_quiet(
    open_page: OpenPage, alice: User, agent: Principal, watch: Watch, scheme: str
) -> None:
    settled = decide(make_pending(agent), alice)
    waiting = make_pending(agent, action=Action(AUDIENCE, "run", {}))
    alice.is_staff = alice.is_superuser = True
    alice.save()
    watch.allowed |= {404}
    page = open_page("/", as_=alice, color_scheme=scheme, viewport={"width": 390, "height": 800})
    home = page.url.rstrip("/")

    for path in (
        f"/confirm/{waiting.id}",
        f"/confirm/{settled.id}",
        "/history",
        "/password",
        "/nowhere",
        "/admin/",
        "/admin/confirmations/confirmation/",
        f"/admin/confirmations/confirmation/{settled.id}/change/",
    ):
        page.goto(f"{home}{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if not path.startswith("/admin"):
            assert not scrolls_sideways(page)


def test_the_sign_in_page_is_quiet(open_page: OpenPage) -> None:
    page = open_page("/sign-in", viewport={"width": 320, "height": 600})

    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert not scrolls_sideways(page)


FRAME_OPTIONS, POLICY = "x-frame-options", "content-security-policy"
REFUSED = {
    FRAME_OPTIONS: "it set 'X-Frame-Options' to 'deny'",
    POLICY: """Content Security Policy directive: "frame-ancestors 'none'\"""",
}


def framed(page: Page, home: str, path: str, *, without: set[str]) -> str:
    """What is drawn of a page in a frame of another one that allows all, with some of its headers gone."""

    def strip(route: Route) -> None:
        answer = route.fetch()
        left = {name: value for name, value in answer.headers.items() if name not in without}
        route.fulfill(response=answer, headers=left)

    framing = f"<iframe src='{home}{path}'></iframe>"
    page.route("**/framing", lambda route: route.fulfill(body=framing, content_type="text/html"))
    page.route(f"**{path}", strip)
    page.goto(f"{home}/framing")
    frame = page.frames[-1]
    frame.wait_for_load_state()
    return frame.content()


@answers("page-07")
@pytest.mark.parametrize("header", [FRAME_OPTIONS, POLICY])
def test_no_page_can_be_framed_by_either_of_two_headers(
    open_page: OpenPage, alice: User, pending_page: str, watch: Watch, header: str
) -> None:
    page = open_page("/history", as_=alice)

    drawn = framed(page, watch.home, pending_page, without={FRAME_OPTIONS, POLICY} - {header})

    assert "Approve" not in drawn
    (problem,) = watch.problems
    assert REFUSED[header] in problem
    watch.problems.clear()


def test_but_for_these_headers_it_could_be_framed(
    open_page: OpenPage, alice: User, pending_page: str, watch: Watch
) -> None:
    page = open_page("/history", as_=alice)

    assert "Approve" in framed(page, watch.home, pending_page, without={FRAME_OPTIONS, POLICY})


@pytest.fixture
def pending_page(agent: Principal) -> str:
    return f"/confirm/{make_pending(agent).id}"


def test_a_question_with_its_files_weighs_under_40_kb(
    open_page: OpenPage, alice: User, agent: Principal
) -> None:
    for number in range(9):
        decide(make_pending(agent, action=Action(AUDIENCE, "run", {"number": number})), alice)
    weights: dict[str, int] = {}
    page = open_page("/history", as_=alice)
    page.on("response", lambda answer: weights.update({answer.url: len(answer.body())}))

    page.goto(page.url.replace("/history", f"/confirm/{make_hostile(agent).id}"))
    page.wait_for_load_state("networkidle")

    assert {url.rpartition(".")[2] for url in weights} >= {"css", "js"}
    assert sum(weights.values()) < 40_000, weights


def test_a_receipt_on_paper_has_all_but_the_controls(
    open_page: OpenPage, alice: User, agent: Principal
) -> None:
    page = open_page(f"/confirm/{decide(make_pending(agent), alice, reason='as agreed').id}", as_=alice)
    page.emulate_media(media="print")

    for kept in ("Approved", "as agreed", "Who decided", "Record", "Check value"):
        expect(page.get_by_text(kept, exact=False).first).to_be_visible()
    expect(
        page.locator("main button:visible, nav:visible, footer:visible, .bar button:visible")
    ).to_have_count(0)


def test_the_field_and_the_button_of_the_search_are_of_one_height(open_page: OpenPage, alice: User) -> None:
    page = open_page("/history", as_=alice)

    field, button = (
        page.get_by_role("searchbox").bounding_box(),
        page.get_by_role("button", name="Find").bounding_box(),
    )

    assert field is not None
    assert button is not None
    assert (field["y"], field["height"]) == (button["y"], button["height"])


def test_what_stands_below_a_narrow_page_begins_where_it_does(open_page: OpenPage, alice: User) -> None:
    page = open_page("/password", as_=alice)

    lefts = page.evaluate(
        "['h1', '.foot a'].map((at) => document.querySelector(at).getBoundingClientRect().left)"
    )

    assert lefts[0] == lefts[1]


def test_a_letter_that_poses_as_another_stands_out(
    open_page: OpenPage, alice: User, agent: Principal
) -> None:
    action = Action(AUDIENCE, "open", {"host": "www.p\u0430ypal.com"})
    page = open_page(f"/confirm/{make_pending(agent, action=action).id}", as_=alice)

    mark = page.locator("dd mark").first

    expect(mark).to_have_text("\u0430")
    expect(mark).to_have_attribute("title", "U+0430 CYRILLIC SMALL LETTER A")
    assert page.locator("dd .v").first.inner_text() == "www.p\u0430ypal.com"
    colour = "element => getComputedStyle(element).backgroundColor"
    assert mark.evaluate(colour) != page.locator("dd .v").first.evaluate(colour)


# Of each label the height of its middle above that of the first line beside it.
OFF_THE_FIRST_LINE = """labels => labels.map(label => {
    const middle = ({top, bottom}) => (top + bottom) / 2, range = document.createRange();
    range.selectNodeContents(label.nextElementSibling);
    const lines = [...range.getClientRects()].filter(({height}) => height < 25).map(middle);
    return Math.min(...lines) - middle(label.getBoundingClientRect());
})"""


@pytest.mark.parametrize("width", [1280, 390])
def test_then_and_now_stand_at_the_first_line_of_what_they_name(
    open_page: OpenPage, alice: User, agent: Principal, width: int
) -> None:
    action = Action(AUDIENCE, "run", {"path": "/srv/a"})

    def ask(digit: str) -> Confirmation:
        facts = (("Size", f"{digit} bytes"), ("Content", f"SHA-256 {digit * 64}"))
        return make_pending(agent, action=action, observation=Observation(facts, digit))

    ledger.revoke(confirmation_id=decide(ask("1"), alice).id, revoker=agent, reason="It changed.")
    page = open_page(f"/confirm/{ask('2').id}", as_=alice, viewport={"width": width, "height": 800})

    off = page.locator(".then small").evaluate_all(OFF_THE_FIRST_LINE)
    assert len(off) == 4
    assert all(abs(each) < 4 for each in off), off

"""The same question again after the target changed: what differs comes first, fact by fact."""

from __future__ import annotations

import re

from django.contrib.auth.models import Group, User
from django.test import Client

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode
from tests.factories import AUDIENCE, decide, make_pending
from tests.pages.conftest import DELETE, signed_in

BEFORE = (("Kind", "regular file"), ("Size", "10 bytes"), ("Line", "one"), ("Line", "two"), ("Owner", "mara"))
AFTER = (
    ("Kind", "regular file"),
    ("Size", "99 bytes"),
    ("Line", "one"),
    ("Line", "2\u202e"),
    ("Mode", "0600"),
)
HEADING = "What changed since"


def ask(agent: Principal, facts: tuple[tuple[str, str], ...], fingerprint: str) -> Confirmation:
    return make_pending(agent, action=DELETE, observation=Observation(facts, fingerprint))


def take_back(confirmation: Confirmation, agent: Principal) -> None:
    ledger.revoke(confirmation_id=confirmation.id, revoker=agent, reason="The target changed.")


def page(browser: Client, confirmation: Confirmation) -> str:
    return browser.get(f"/confirm/{confirmation.id}").content.decode()


def test_what_changed_since_the_yes_comes_first_and_alone(
    browser: Client, alice: User, agent: Principal
) -> None:
    first = decide(ask(agent, BEFORE, "etag-1"), alice)
    take_back(first, agent)

    html = page(browser, ask(agent, AFTER, "etag-2"))

    assert html.index("What changed since you said yes") < html.index("What will be done")
    section = html[html.index("What changed since you said yes") : html.index("What will be done")]
    words = " ".join(re.sub(r"<[^>]+>", " ", section).split())
    digest = bytes(first.digest).hex()
    assert f"the same action with the same arguments, digest {digest[:4]} {digest[4:8]} ." in words
    assert "The reason that was given: The target changed." in words
    for differs in (
        "Size then 10 bytes now 99 bytes",
        "Line then two now 2 \u27e8U+202E\u27e9",
        "Owner then mara now no longer there",
        "Mode then not there now 0600",
    ):
        assert differs in words
    assert "regular file" not in words
    assert "one" not in words.split()
    assert "regular file" in html  # the rest of the page is as ever
    assert "was approved at" in section
    assert html.count("Exactly this was approved") == 1


def test_where_nothing_that_is_shown_differs_the_page_says_so(
    browser: Client, alice: User, agent: Principal
) -> None:
    take_back(decide(ask(agent, BEFORE, "etag-1"), alice), agent)

    html = page(browser, ask(agent, BEFORE, "etag-2"))

    assert "what differs is in its fingerprint alone" in html


def test_a_question_that_was_withdrawn_in_between_hides_nothing(
    browser: Client, alice: User, agent: Principal
) -> None:
    take_back(decide(ask(agent, BEFORE, "etag-1"), alice), agent)
    ledger.cancel(confirmation_id=ask(agent, AFTER, "etag-2").id, requester=agent)

    assert "Size" in page(browser, ask(agent, AFTER, "etag-3")).partition(HEADING)[2]


def test_there_is_nothing_to_tell_without_a_yes_that_was_taken_back(
    browser: Client, alice: User, agent: Principal
) -> None:
    other = make_pending(
        agent, action=Action(AUDIENCE, "other", {}), observation=Observation(BEFORE, "etag-1")
    )
    take_back(decide(other, alice), agent)
    unchanged = decide(ask(agent, BEFORE, "etag-1"), alice)
    take_back(unchanged, agent)

    assert HEADING not in page(browser, ask(agent, BEFORE, "etag-1"))


def test_who_did_not_say_yes_is_not_told_that_they_did(alice: User, bob: User, agent: Principal) -> None:
    payers = Group.objects.create(name="payers")
    payers.user_set.add(alice, bob)
    Rule.objects.create(name="one", rank=1, mode=Mode.APPROVE, approver_group=payers, self_approval=True)
    take_back(decide(ask(agent, BEFORE, "etag-1"), bob), agent)
    again = ask(agent, AFTER, "etag-2")

    assert "What changed since the last yes" in page(signed_in(alice), again)
    assert "What changed since you said yes" in page(signed_in(bob), again)

"""The confirm page: what stands around the question, and who of several may answer it when."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from django.contrib.auth.models import Group, User
from django.db.models.functions import Now
from django.test import Client

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode, Status, Verdict
from tests.confirmations.clock import make_overdue
from tests.factories import AUDIENCE, PASSWORD, decide, make_pending

type Form = Callable[..., dict[str, str]]


def url(confirmation: Confirmation) -> str:
    return f"/confirm/{confirmation.id}"


def page(browser: Client, confirmation: Confirmation) -> str:
    response = browser.get(url(confirmation))
    assert response.status_code == 200
    return response.content.decode()


def make_late(confirmation: Confirmation) -> Confirmation:
    return make_overdue(confirmation, decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))


def test_what_the_requester_asked_before_is_shown_with_what_became_of_it(
    browser: Client, agent: Principal, alice: User, pending: Confirmation
) -> None:
    denied = make_pending(agent, action=Action(AUDIENCE, "x", {}), question="Burn it all?")
    decide(denied, alice, Verdict.DENY)

    html = page(browser, pending)

    past = html.partition('class="past"')[2]
    assert "Burn it all?" in past
    assert '<span class="tag bad">Denied</span>' in past
    assert "Delete one file" not in past


def test_a_withdrawn_question_has_a_receipt(browser: Client, agent: Principal, pending: Confirmation) -> None:
    ledger.cancel(confirmation_id=pending.id, requester=agent)

    assert "<b>Withdrawn</b>" in page(browser, pending)


def test_what_differs_from_the_last_approval_is_marked(
    browser: Client, agent: Principal, alice: User
) -> None:
    def ask(**arguments: str) -> Confirmation:
        return make_pending(agent, action=Action(AUDIENCE, "pay", arguments))

    first = ask(to="Bea", cents="100")
    assert "was approved at" not in page(browser, first)
    decide(first, alice)
    decide(ask(to="Eve", cents="1"), alice, Verdict.DENY)
    make_pending(agent, action=Action(AUDIENCE, "other", {"to": "Zoe"}))

    html = page(browser, ask(to="Bea", cents="90100"))

    assert "with other arguments. What differs from then is marked." in html
    assert (
        '<span class="tag warn">changed</span> last time: <del><bdi dir="ltr" lang="">100</bdi></del>' in html
    )
    assert html.count("last time:") == 1
    ledger.revoke(confirmation_id=first.id, revoker=alice, reason="")
    assert "with exactly these arguments." in page(browser, ask(to="Bea", cents="100"))


def test_a_stale_sign_in_is_asked_for_again_and_then_decides(
    browser: Client, alice: User, agent: Principal
) -> None:
    Rule.objects.create(name="fresh", rank=1, mode=Mode.CONFIRM, sign_in_within=dt.timedelta(minutes=5))
    asked = make_pending(agent)
    User.objects.filter(pk=alice.pk).update(last_login=Now() - dt.timedelta(minutes=6))
    form = {"verdict": "approve", "digest_shown": bytes(asked.view_digest).hex()}

    html = page(browser, asked)
    refused = browser.post(url(asked), form)
    asked.refresh_from_db()
    assert asked.status == Status.PENDING

    again = f'href="/sign-in?next={url(asked)}"'
    assert "a sign-in within the last 5 minutes" in html
    assert again in html
    assert "Approve once" not in html
    assert refused.status_code == 403
    assert again in refused.content.decode()

    back = browser.post(
        "/sign-in", {"username": "alice", "password": PASSWORD, "next": url(asked)}, follow=True
    )
    assert "Approve once" in back.content.decode()
    browser.post(url(asked), form)
    asked.refresh_from_db()
    assert asked.status == Status.APPROVED


def test_whose_agent_asked_sees_what_others_decide_on(
    browser: Client, stranger: Client, bob: User, agent: Principal
) -> None:
    payers = Group.objects.create(name="payers")
    bob.groups.add(payers)
    Rule.objects.create(name="four eyes", rank=1, mode=Mode.APPROVE, approver_group=payers)
    asked = make_pending(agent)
    form = {"verdict": "approve", "digest_shown": bytes(asked.view_digest).hex()}

    mine = page(browser, asked)
    refused = browser.post(url(asked), form)
    theirs = page(stranger, asked)

    assert "Others decide on this" in mine
    assert "Approve once" not in mine
    assert refused.status_code == 403
    assert 'asks for the account <b><bdi dir="ltr" lang="">alice</bdi></b>' in theirs
    stranger.post(url(asked), form)
    asked.refresh_from_db()
    assert asked.status == Status.APPROVED


def test_one_approval_of_two_says_so_and_waits(
    browser: Client, stranger: Client, alice: User, bob: User, agent: Principal
) -> None:
    payers = Group.objects.create(name="payers")
    payers.user_set.add(alice, bob)
    Rule.objects.create(
        name="both", rank=1, mode=Mode.APPROVE, approver_group=payers, approvals_needed=2, self_approval=True
    )
    asked = make_pending(agent)
    form = {"verdict": "approve", "digest_shown": bytes(asked.view_digest).hex()}

    after = browser.post(url(asked), form, follow=True).content.decode()

    assert "You have decided" in after
    assert "2 approvals needed" in after
    assert "Approve once" not in after
    assert "Approve once" in page(stranger, asked)


def test_who_answers_twice_while_others_have_yet_to_is_told_that_the_first_counts(
    browser: Client, alice: User, bob: User, agent: Principal
) -> None:
    payers = Group.objects.create(name="payers")
    payers.user_set.add(alice, bob)
    Rule.objects.create(
        name="both", rank=1, mode=Mode.APPROVE, approver_group=payers, approvals_needed=2, self_approval=True
    )
    asked = decide(make_pending(agent), alice)
    form = {"verdict": "deny", "digest_shown": bytes(asked.view_digest).hex()}

    refused = browser.post(url(asked), form)

    html = refused.content.decode()
    assert refused.status_code == 409
    assert "You have answered before" in html
    assert "Open it again" in html
    asked.refresh_from_db()
    assert asked.status == Status.PENDING


def test_a_letter_that_poses_as_another_is_marked_where_it_stands(browser: Client, agent: Principal) -> None:
    action = Action(AUDIENCE, "open", {"host": "p\u0430ypal.com"})

    html = page(browser, make_pending(agent, action=action))

    assert '<mark title="U+0430 CYRILLIC SMALL LETTER A">\u0430</mark>' in html


def test_a_program_that_acts_for_nobody_is_said_to(browser: Client, alice: User) -> None:
    payers = Group.objects.create(name="payers")
    payers.user_set.add(alice)
    Rule.objects.create(name="four eyes", rank=1, mode=Mode.APPROVE, approver_group=payers)
    service = Principal("nightly", "client:nightly")

    asked = make_pending(service)
    question = page(browser, asked)
    decide(asked, alice, Verdict.DENY)
    receipt = page(browser, asked)

    assert "asks on its own behalf, for no person" in question
    assert "on your behalf" not in question
    assert "client:nightly" not in receipt

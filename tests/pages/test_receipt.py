"""The receipt: who decided, what came of it, and whether the record is whole."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now
from django.test import Client

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Assurance, Mode, Result, Status, Verdict
from tests.confirmations.clock import make_overdue
from tests.factories import AUDIENCE, decide, make_approved, make_pending, make_user, redeem
from tests.pages.conftest import DELETE


def receipt(browser: Client, confirmation: Confirmation) -> str:
    return browser.get(f"/confirm/{confirmation.id}").content.decode()


def behind_the_ledgers_back(statement: str) -> None:
    """As the owner of the tables could."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SET CONSTRAINTS ALL IMMEDIATE"
        )  # else the open transaction's checks bar the next line
        cursor.execute("ALTER TABLE confirmations_event DISABLE TRIGGER USER")
        cursor.execute(statement)
        cursor.execute("ALTER TABLE confirmations_event ENABLE TRIGGER USER")


def test_the_outcome_is_shown_in_the_words_of_who_did_it(
    browser: Client, alice: User, agent: Principal, pending: Confirmation, transactional_db: None
) -> None:
    spent = redeem(decide(pending, alice), agent, action=DELETE)
    before = receipt(browser, pending)
    ledger.report_outcome(receipt=spent, result=Result.FAILED, detail="The file\u200b was in use.")

    after = receipt(browser, pending)

    assert "What came of it has not been reported." in before
    assert "<b>Failed</b>" in after
    assert "The file" in after
    assert "⟨U+200B⟩" in after


def test_the_record_names_who_was_signed_in_whatever_the_form_says(
    browser: Client, alice: User, bob: User, pending: Confirmation, form: Callable[..., dict[str, str]]
) -> None:
    claims = {name: str(bob.pk) for name in ("approver", "actor", "user", "username", "decided_by")}

    browser.post(f"/confirm/{pending.id}", form(**claims))

    assert pending.decisions.get().approver == alice
    assert pending.events.get(kind="approve").actor == f"user {alice.pk}"


def test_a_yes_can_be_taken_back_until_it_is_used(
    browser: Client, alice: User, pending: Confirmation
) -> None:
    decide(pending, alice)
    assert "Take the yes back" in receipt(browser, pending)

    response = browser.post(f"/confirm/{pending.id}/revoke", {"reason": "wrong folder"}, follow=True)

    pending.refresh_from_db()
    html = response.content.decode()
    assert pending.status == Status.REVOKED
    assert "<b>Taken back</b>" in html
    assert "wrong folder" in html
    assert "Take the yes back" not in html


def test_a_spent_yes_cannot_be_taken_back(
    browser: Client, alice: User, agent: Principal, pending: Confirmation, transactional_db: None
) -> None:
    redeem(decide(pending, alice), agent, action=DELETE)

    response = browser.post(f"/confirm/{pending.id}/revoke", {"reason": ""})

    pending.refresh_from_db()
    assert response.status_code == 409
    assert "This yes was spent before" in response.content.decode()
    assert pending.status == Status.REDEEMED


def test_nobody_else_takes_a_yes_back(stranger: Client, alice: User, pending: Confirmation) -> None:
    decide(pending, alice)

    response = stranger.post(f"/confirm/{pending.id}/revoke", {"reason": ""})

    pending.refresh_from_db()
    assert response.status_code == 404
    assert pending.status == Status.APPROVED


def test_the_record_names_people(browser: Client, alice: User, pending: Confirmation) -> None:
    decide(pending, alice)

    html = receipt(browser, pending)

    record = re.sub(r"<[^>]+>", "", html[html.index(">Record<") :])
    assert "asked by https://agent.example/client.json for alice" in record
    assert "approved by alice" in record
    assert "user " not in record


def test_the_record_says_in_words_what_programs_and_the_clock_did(
    browser: Client, alice: User, agent: Principal, pending: Confirmation, transactional_db: None
) -> None:
    spent = redeem(decide(pending, alice), agent, action=DELETE)
    ledger.report_outcome(receipt=spent, result=Result.SUCCEEDED)
    late = make_overdue(make_approved(agent, alice), redeem_by=Now())
    ledger.expire_due(limit=10)

    done, over = (re.sub(r"<[^>]+>", "", receipt(browser, row)) for row in (pending, late))

    assert "used by https://agent.example/client.json for alice" in done
    assert "reported as done by the program that did it" in done
    assert "expired" in over[over.index("Record") :]
    # A yes that ran out is no question that nobody answered.
    assert "Approved, not used in time" in over[: over.index("Record")]
    assert "Approved, not used in time" in browser.get("/history").content.decode()
    for word in ("executor", "clock", "succeeded", "redeemed"):
        assert word not in done + over


def test_why_a_question_ended_without_a_vote_is_shown(
    browser: Client, agent: Principal, pending: Confirmation
) -> None:
    operator = make_user("operator", is_superuser=True)
    withdrawn = make_pending(agent, action=Action(AUDIENCE, "x", {}))
    ledger.cancel(confirmation_id=withdrawn.id, requester=agent, reason="No longer\u200b needed")
    ledger.deny(confirmation_id=pending.id, operator=operator, reason="Not this week")

    first, second = receipt(browser, withdrawn), receipt(browser, pending)

    assert "<b>Withdrawn</b>" in first
    assert "No longer" in first
    assert "\u200b" not in first
    assert "<b>Denied</b>" in second
    assert "Not this week" in second
    assert "denied " in second[second.index(">Record<") :]
    assert "operator</bdi>" in second


def test_an_answer_that_the_host_passed_on_is_called_one(
    browser: Client, alice: User, agent: Principal
) -> None:
    Rule.objects.create(name="easy", rank=1, mode=Mode.CONFIRM, assurance=Assurance.HOST)
    asked = make_pending(agent)
    ledger.answer_by_host(
        confirmation_id=asked.id,
        requester=agent,
        verdict=Verdict.APPROVE,
        digest_shown=bytes(asked.view_digest).hex(),
    )

    html = receipt(browser, asked)

    assert "its page here was not opened for it" in html
    assert "having seen" not in html


def test_a_changed_record_is_called_one(browser: Client, alice: User, pending: Confirmation) -> None:
    decide(pending, alice)
    behind_the_ledgers_back("UPDATE confirmations_event SET actor = 'user 999' WHERE seq = 2")

    html = receipt(browser, pending)

    assert "all are in place" not in html
    assert "somebody has changed this record" in html


def test_a_record_with_its_end_cut_off_is_called_changed(
    browser: Client, alice: User, pending: Confirmation
) -> None:
    decide(pending, alice)
    behind_the_ledgers_back("DELETE FROM confirmations_event WHERE seq = 2")

    assert "somebody has changed this record" in receipt(browser, pending)

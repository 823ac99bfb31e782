"""The operators' queue: seen with the permission, never changed, and every value shown with its marks."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries, Settings

from confirmhub.confirmations import audit, errors
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Notice
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Verdict
from confirmhub.review import wording
from tests.confirmations.clock import make_overdue
from tests.confirmations.test_audit import as_owner
from tests.confirmations.test_rules import make_rule
from tests.factories import (
    AUDIENCE,
    decide,
    make_approved,
    make_pending,
    make_user,
    principal_for,
    redeem,
)
from tests.review.people import signed_in

QUEUE = "/admin/confirmations/confirmation/"
UNUSED = "approved, not used in time"


@pytest.fixture
def denied(agent: Principal, alice: User) -> Confirmation:
    """A hostile request, denied with a hostile reason."""
    hostile = "a\u202eb<script>"
    action = Action(AUDIENCE, "run", {hostile: hostile, "more": {"x": [hostile]}})
    asked = make_pending(agent, action=action, summary=hostile, question=f"Run {hostile}?")
    return decide(asked, alice, Verdict.DENY, reason=hostile)


def row(confirmation: Confirmation) -> str:
    return f"{QUEUE}{confirmation.id}/change/"


def test_the_queue_shows_what_matters_of_each(onlooker: Client, denied: Confirmation) -> None:
    html = onlooker.get(QUEUE).content.decode()

    for said in (
        '<span class="status denied">denied</span>',
        "Run a⟨U+202E⟩b&lt;script&gt;?",
        ">run<",
        "https://agent.example/client.json",
        f"{denied.requested_at:%Y-%m-%d %H:%M:%S} UTC",
        f"denied {denied.settled_at:%Y-%m-%d %H:%M:%S} UTC",
    ):
        assert said in html
    assert "\u202e" not in html
    assert "<script>" not in html


def test_a_row_shows_all_of_it_with_decisions_and_log(onlooker: Client, denied: Confirmation) -> None:
    html = onlooker.get(row(denied)).content.decode()

    assert html.count("a⟨U+202E⟩b&lt;script&gt;") >= 6  # question, key, value, nested value, summary, reason
    assert "\u202e" not in html
    assert "b<script>" not in html
    for said in ("alice", bytes(denied.digest).hex(), bytes(denied.view_digest).hex(), "requested", "asked"):
        assert said in html.lower()


def test_an_overdue_question_is_called_expired(onlooker: Client, agent: Principal) -> None:
    make_overdue(make_pending(agent), decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

    html = onlooker.get(QUEUE).content.decode()
    assert '<span class="status expired">expired</span>' in html
    assert UNUSED not in html


def test_a_yes_that_ran_out_is_told_from_a_question_that_did(
    onlooker: Client, agent: Principal, alice: User
) -> None:
    late = make_overdue(make_approved(agent, alice), redeem_by=Now())

    assert UNUSED in onlooker.get(QUEUE).content.decode()
    assert UNUSED in onlooker.get(row(late)).content.decode()


def test_a_row_says_until_when_it_can_change_or_when_it_ended(
    onlooker: Client, agent: Principal, alice: User
) -> None:
    def act(name: str) -> Action:
        return Action(AUDIENCE, name, {})

    make_pending(agent, action=act("waits"))
    decide(make_pending(agent, action=act("is-given")), alice)
    redeem(decide(make_pending(agent, action=act("is-spent")), alice), agent, action=act("is-spent"))
    decide(make_pending(agent, action=act("is-refused")), alice, Verdict.DENY)
    make_overdue(make_pending(agent, action=act("is-late")), decide_by=Now())
    make_overdue(make_approved(agent, alice, action=act("is-unused")), redeem_by=Now())

    lines = {line.action: line for line in onlooker.get(QUEUE).context["cl"].lines}

    said = {name: re.sub(r" [0-9-]{10} [0-9:]{8} UTC", "", line.then) for name, line in lines.items()}
    assert said == {
        "waits": "due",
        "is-given": "usable until",
        "is-spent": "redeemed",
        "is-refused": "denied",
        "is-late": "ran out",
        "is-unused": "ran out",
    }
    assert {name for name, line in lines.items() if line.left} == {"waits", "is-given"}
    html = onlooker.get(QUEUE).content.decode()
    assert html.count("due 20") == 1


@pytest.mark.parametrize("path", ["add/", "{}/change/", "{}/delete/"])
@pytest.mark.parametrize("who", ["onlooker", "superuser"])
def test_nothing_is_changed_here(onlooker: Client, denied: Confirmation, path: str, who: str) -> None:
    if who == "superuser":
        onlooker = signed_in(make_user("root", is_staff=True, is_superuser=True))
    before = Confirmation.objects.values().get()

    response = onlooker.post(QUEUE + path.format(denied.id), {"status": "approved", "post": "yes"})

    assert response.status_code == 403
    assert Confirmation.objects.values().get() == before


def test_there_is_no_action_to_choose(onlooker: Client, denied: Confirmation) -> None:
    html = onlooker.get(QUEUE).content.decode()

    assert 'name="action"' not in html
    assert "_selected_action" not in html


def test_staff_without_the_permission_see_nothing(denied: Confirmation) -> None:
    client = signed_in(make_user("clerk", is_staff=True))

    assert client.get(QUEUE).status_code == 403
    assert client.get(row(denied)).status_code == 403


def test_who_is_not_staff_is_refused_and_not_asked_for_a_password(alice: User) -> None:
    response = signed_in(alice).get(QUEUE, follow=True)

    assert response.status_code == 403
    assert "You are not allowed to do that" in response.content.decode()


def test_the_sign_in_is_the_one_for_everybody(db: None) -> None:
    nobody = Client(headers={"host": "localhost"})

    response = nobody.get(QUEUE, follow=True)

    assert response.redirect_chain[-1] == (f"/sign-in?next={QUEUE}", 302)


def test_no_other_host_is_gone_to_by_way_of_the_admin(db: None, alice: User) -> None:
    nobody = Client(headers={"host": "localhost"})

    response = nobody.get("/admin/login/?next=https://evil.example/", follow=True)

    assert "https://evil.example" not in response.content.decode()


def test_the_queue_is_searched(onlooker: Client, denied: Confirmation, agent: Principal) -> None:
    make_pending(agent, question="Something else?")

    html = onlooker.get(QUEUE, {"q": "else"}).content.decode()

    assert "Something else?" in html
    assert "Run a" not in html


def test_many_rows_take_no_more_questions_than_few(
    onlooker: Client, agent: Principal, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(20):
        make_pending(agent, action=Action(AUDIENCE, "run", {"number": number}))

    with django_assert_max_num_queries(14):
        onlooker.get(QUEUE)


def test_the_log_is_shown_in_lines_and_not_as_json(onlooker: Client, denied: Confirmation) -> None:
    html = onlooker.get(row(denied)).content.decode()

    assert '<b>status</b> <bdi dir="ltr">denied</bdi>' in html
    assert '<b>reason</b> <bdi dir="ltr">a⟨U+202E⟩b&lt;script&gt;</bdi>' in html
    assert "{&quot;view_digest" not in html
    assert "{&quot;digest" not in html


def test_the_index_lists_what_an_operator_can_use(root: Client) -> None:
    html = root.get("/admin/").content.decode()

    assert "/admin/confirmations/rule/" in html
    assert "/admin/axes/" not in html
    assert "/admin/oauth/idtoken/" not in html
    assert root.get("/admin/oauth/idtoken/").status_code == 403


def test_the_way_back_and_out_is_as_on_every_page(root: Client) -> None:
    html = root.get("/admin/").content.decode()

    assert '<a href="/">Waiting</a>' in html
    assert 'action="/sign-out"' in html
    assert "Log out" not in html
    assert "View site" not in html


def test_a_search_looks_through_the_newest_that_the_filters_leave(
    onlooker: Client, agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(make_pending(agent, action=Action(AUDIENCE, "first", {"path": "/srv/needle"})), alice)
    make_pending(agent, action=Action(AUDIENCE, "second", {"path": "/srv/needle"}))
    monkeypatch.setattr("confirmhub.review.admin.SEARCHED", 1)

    def found(query: str) -> set[str]:
        html = onlooker.get(f"{QUEUE}?{query}").content.decode()
        return {name for name in ("first", "second") if name in html}

    assert found("q=needle") == {"second"}
    assert found("q=needle&status__exact=approved") == {"first"}
    assert found("") == {"first", "second"}


def test_each_view_finds_what_it_is_for(onlooker: Client, agent: Principal, alice: User, bob: User) -> None:
    def asked(name: str) -> Confirmation:
        return make_pending(agent, action=Action(AUDIENCE, name, {}))

    waiting, usable = asked("is-waiting"), decide(asked("is-usable"), alice)
    unknown = decide(asked("is-unknown"), alice)
    redeem(unknown, agent, action=Action(AUDIENCE, "is-unknown", {}))
    make_overdue(unknown, redeemed_at=Now() - dt.timedelta(hours=1))
    refused = decide(asked("is-refused"), alice, Verdict.DENY)
    for _ in range(3):
        with pytest.raises(errors.Denied):
            redeem(refused, agent, action=Action(AUDIENCE, "is-refused", {}))
    Notice.objects.filter(confirmation=usable, kind="asked").update(given_up_at=Now())
    theirs = principal_for(bob, client_id="https://other.example/client.json")
    make_pending(theirs, action=Action(AUDIENCE, "is-theirs", {}))

    def found(query: str) -> set[str]:
        html = onlooker.get(f"{QUEUE}?{query}").content.decode()
        return set(re.findall(r"is-[a-z]+", html))

    assert found("view=waiting") == {waiting.action, "is-theirs"}
    assert found("view=usable") == {"is-usable"}
    assert found("view=unknown") == {"is-unknown"}
    assert found("view=refused") == {"is-refused"}
    assert found("view=undelivered") == {"is-usable"}
    assert found("requester=https://other.example/client.json") == {"is-theirs"}
    assert found("view=waiting&requester=https://agent.example/client.json") == {"is-waiting"}
    assert found(f"q={unknown.id}") == {"is-unknown"}
    assert len(found("view=no-such-view")) == 5
    html = onlooker.get(QUEUE).content.decode()
    for said in ("Waiting longest (2)", "outcome unknown", "refused 3 times", "1 notice given up", "for bob"):
        assert said in html


@pytest.mark.parametrize("query", ["arguments__contains=a", "requester_subject__regex=a", "p=101", "p=2"])
def test_what_would_read_every_row_is_not_asked(onlooker: Client, denied: Confirmation, query: str) -> None:
    assert onlooker.get(f"{QUEUE}?{query}").status_code in (302, 400)


def test_pages_are_turned_and_nothing_is_counted(
    onlooker: Client, agent: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("confirmhub.review.admin.ConfirmationAdmin.list_per_page", 2)
    for number in range(5):
        make_pending(agent, action=Action(AUDIENCE, f"is-{number}", {}))

    def page(number: int) -> tuple[list[str], list[str]]:
        with CaptureQueriesContext(connection) as asked:
            html = onlooker.get(f"{QUEUE}?p={number}").content.decode()
        assert not [query for query in asked if 'COUNT(*) AS "__count"' in query["sql"]]
        return re.findall(r">(is-\d)<", html), re.findall(r'href="\?p=(\d+)"', html)

    assert page(1) == (["is-4", "is-3"], ["2"])
    assert page(2) == (["is-2", "is-1"], ["1", "3"])
    assert page(3) == (["is-0"], ["1", "2"])


def test_the_way_to_the_confirm_page_is_shown_to_those_alone_who_may_decide_there(
    onlooker: Client, agent: Principal, alice: User
) -> None:
    alice.is_staff = True
    alice.save()
    alice.user_permissions.add(Permission.objects.get(codename="view_confirmation"))
    asked = make_pending(agent)
    link = f'href="/confirm/{asked.id}"'

    assert link in signed_in(alice).get(row(asked)).content.decode()
    html = onlooker.get(row(asked)).content.decode()
    assert link not in html
    assert "by those whom the rule names" in html
    decide(asked, alice)
    assert link not in signed_in(alice).get(row(asked)).content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_record_whose_chain_is_broken_says_so_in_red_and_one_that_holds_says_that(
    onlooker: Client, denied: Confirmation
) -> None:
    broken = "The seals do not fit the entries"
    html = onlooker.get(row(denied)).content.decode()
    assert "2 entries, each sealed with the one before it. Checked just now: all are in place." in html
    assert "A checkpoint vouches for none of them so far." in html
    assert broken not in html
    audit.seal(limit=1)
    assert "A checkpoint vouches for all of them so far." in onlooker.get(row(denied)).content.decode()

    as_owner(f"UPDATE confirmations_event SET actor = 'user 0' WHERE confirmation_id = '{denied.id}'")

    html = onlooker.get(row(denied)).content.decode()
    assert f'<strong class="broken">{broken}' in html
    assert "all are in place" not in html


def test_what_is_to_be_noted_of_a_row_stands_beside_its_status(
    onlooker: Client, agent: Principal, alice: User
) -> None:
    spent = decide(make_pending(agent), alice)
    redeem(spent, agent)
    with pytest.raises(errors.AlreadyRedeemed):
        redeem(spent, agent)
    Notice.objects.filter(confirmation=spent).update(given_up_at=Now())

    html = onlooker.get(row(spent)).content.decode()

    said = re.findall(r'<span class="note \w+">([^<]+)</span>', html)
    assert said == ["outcome unknown", "refused once", "1 notice given up"]
    assert "built-in: confirm, 1 approval, decided on the page, usable for 5 min" in html


def test_mail_that_went_into_a_folder_is_not_called_sent(
    onlooker: Client, agent: Principal, settings: Settings, tmp_path: Path
) -> None:
    asked = make_pending(agent)
    Notice.objects.filter(confirmation=asked).update(sent_at=Now())
    assert re.search(r"\bsent 20\d\d-", onlooker.get(row(asked)).content.decode())

    settings.MAILERS = {"default": {"OPTIONS": {"file_path": str(tmp_path)}}}

    html = onlooker.get(row(asked)).content.decode()
    assert "written to a file 20" in html
    assert not re.search(r"\bsent 20\d\d-", html)


def test_how_far_a_quorum_has_come_stands_in_the_list(onlooker: Client, agent: Principal, bob: User) -> None:
    group = Group.objects.create(name="payers")
    bob.groups.add(group)
    make_user("carol").groups.add(group)
    make_rule("approve", approver_group=group, approvals_needed=2)
    decide(make_pending(agent), bob)

    assert "1 of 2 approvals" in onlooker.get(QUEUE).content.decode()


def test_the_longest_waiting_stands_first(onlooker: Client, agent: Principal) -> None:
    for minutes in (2, 8, 5):
        asked = make_pending(agent, action=Action(AUDIENCE, f"since-{minutes}", {}))
        make_overdue(asked, requested_at=Now() - dt.timedelta(minutes=minutes))

    def found(query: str) -> list[str]:
        return re.findall(r">(since-\d)<", onlooker.get(f"{QUEUE}?{query}").content.decode())

    assert found("view=waiting") == ["since-8", "since-5", "since-2"]
    assert found("") == ["since-2", "since-5", "since-8"]


def test_lengths_are_said_to_the_second_where_it_matters() -> None:
    assert wording.exactly(dt.timedelta(minutes=1, seconds=30)) == "1 min 30 s"
    assert wording.ago(dt.timedelta(minutes=1, seconds=30)) == "1 min"
    assert wording.exactly(dt.timedelta()) == wording.ago(dt.timedelta(seconds=-1)) == "0 s"

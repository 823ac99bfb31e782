"""The operators' queue: seen with the permission, never changed, and every value shown with its marks."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db.models.functions import Now
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Verdict
from tests.confirmations.clock import make_overdue
from tests.factories import AUDIENCE, decide, make_pending, make_user

QUEUE = "/admin/confirmations/confirmation/"


@pytest.fixture(autouse=True)
def static_root(settings: Settings, tmp_path: Path) -> None:
    """Whitenoise warns of a folder that is missing."""
    settings.STATIC_ROOT = tmp_path


@pytest.fixture
def operator(db: None) -> Client:
    """Somebody of the staff who may view confirmations, and nothing else."""
    olga = make_user("olga", is_staff=True)
    olga.user_permissions.add(Permission.objects.get(codename="view_confirmation"))
    return signed_in(olga)


@pytest.fixture
def denied(agent: Principal, alice: User) -> Confirmation:
    """A hostile request, denied with a hostile reason."""
    hostile = "a\u202eb<script>"
    action = Action(AUDIENCE, "run", {hostile: hostile, "more": {"x": [hostile]}})
    asked = make_pending(agent, action=action, summary=hostile, question=f"Run {hostile}?")
    return decide(asked, alice, Verdict.DENY, reason=hostile)


def signed_in(user: User) -> Client:
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    return client


def row(confirmation: Confirmation) -> str:
    return f"{QUEUE}{confirmation.id}/change/"


def test_the_queue_shows_what_matters_of_each(operator: Client, denied: Confirmation) -> None:
    html = operator.get(QUEUE).content.decode()

    for said in (
        '<span class="status denied">denied</span>',
        "Run a⟨U+202E⟩b&lt;script&gt;?",
        ">run<",
        "https://agent.example/client.json",
        f"{denied.requested_at:%Y-%m-%d %H:%M:%S} UTC",
        f"{denied.decide_by:%Y-%m-%d %H:%M:%S} UTC",
        "0 of 1",
    ):
        assert said in html
    assert "\u202e" not in html
    assert "<script>" not in html


def test_a_row_shows_all_of_it_with_decisions_and_log(operator: Client, denied: Confirmation) -> None:
    html = operator.get(row(denied)).content.decode()

    assert html.count("a⟨U+202E⟩b&lt;script&gt;") >= 6  # question, key, value, nested value, summary, reason
    assert "\u202e" not in html
    assert "b<script>" not in html
    for said in ("alice", bytes(denied.digest).hex(), bytes(denied.view_digest).hex(), "requested", "asked"):
        assert said in html.lower()


def test_an_overdue_question_is_called_expired(operator: Client, agent: Principal) -> None:
    make_overdue(make_pending(agent), decide_by=Now(), requested_at=Now() - dt.timedelta(hours=1))

    assert '<span class="status expired">expired</span>' in operator.get(QUEUE).content.decode()


@pytest.mark.parametrize("path", ["add/", "{}/change/", "{}/delete/"])
@pytest.mark.parametrize("who", ["operator", "superuser"])
def test_nothing_is_changed_here(operator: Client, denied: Confirmation, path: str, who: str) -> None:
    if who == "superuser":
        operator = signed_in(make_user("root", is_staff=True, is_superuser=True))
    before = Confirmation.objects.values().get()

    response = operator.post(QUEUE + path.format(denied.id), {"status": "approved", "post": "yes"})

    assert response.status_code == 403
    assert Confirmation.objects.values().get() == before


def test_there_is_no_action_to_choose(operator: Client, denied: Confirmation) -> None:
    html = operator.get(QUEUE).content.decode()

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


def test_the_queue_is_searched(operator: Client, denied: Confirmation, agent: Principal) -> None:
    make_pending(agent, question="Something else?")

    html = operator.get(QUEUE, {"q": "else"}).content.decode()

    assert "Something else?" in html
    assert "Run a" not in html


def test_many_rows_take_no_more_questions_than_few(
    operator: Client, agent: Principal, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(20):
        make_pending(agent, action=Action(AUDIENCE, "run", {"number": number}))

    with django_assert_max_num_queries(10):
        operator.get(QUEUE)


ADD_RULE = "/admin/confirmations/rule/add/"
FOUR_EYES = {
    "name": "four eyes",
    "rank": "1",
    "action_pattern": "payments.*",
    "mode": "approve",
    "approvals_needed": "2",
    "decide_within": "00:10:00",
    "redeem_within": "00:05:00",
    "max_open": "50",
    "max_waiting": "200",
}


@pytest.fixture
def root(db: None) -> Client:
    """A superuser."""
    return signed_in(make_user("root", is_staff=True, is_superuser=True))


@pytest.fixture
def payers(alice: User, bob: User) -> Group:
    """Two people who may decide."""
    group = Group.objects.create(name="payers")
    group.user_set.add(alice, bob)
    return group


def test_rules_are_kept_by_who_may(operator: Client, root: Client, payers: Group) -> None:
    assert operator.get(ADD_RULE).status_code == 403

    assert root.post(ADD_RULE, FOUR_EYES | {"approver_group": str(payers.pk)}).status_code == 302

    assert Rule.objects.get().approvals_needed == 2
    assert "payments.*" in root.get("/admin/confirmations/rule/").content.decode()


@pytest.mark.parametrize(
    ("changed", "field", "says"),
    [
        ({"approver_group": ""}, "approver_group", "Name the group whose members approve."),
        ({"approvals_needed": "3"}, "approvals_needed", "payers has fewer active members (2) than this"),
        ({"approvals_needed": "0"}, "approvals_needed", "At least one approval is needed."),
        ({"mode": "confirm"}, "approvals_needed", "Only the mode approve takes more than one approval."),
        ({"decide_within": "00:00:00"}, "decide_within", "must be longer than nothing"),
        ({"redeem_within": "-00:00:01"}, "redeem_within", "must be longer than nothing"),
        ({"sign_in_within": "0"}, "sign_in_within", "must be longer than nothing"),
        ({"max_open": "0"}, "max_open", "A limit of nothing is the mode deny."),
        ({"max_waiting": "0"}, "max_waiting", "A limit of nothing is the mode deny."),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_at_its_field(
    root: Client, payers: Group, changed: dict[str, str], field: str, says: str
) -> None:
    answer = root.post(ADD_RULE, FOUR_EYES | {"approver_group": str(payers.pk)} | changed)

    errors = answer.context["adminform"].form.errors
    assert list(errors) == [field]
    assert says in errors[field][0]
    assert not Rule.objects.exists()


def test_a_quorum_counts_who_is_active(root: Client, payers: Group, bob: User) -> None:
    bob.is_active = False
    bob.save()

    answer = root.post(ADD_RULE, FOUR_EYES | {"approver_group": str(payers.pk)})

    assert "fewer active members (1)" in answer.content.decode()
    assert not Rule.objects.exists()


def test_the_log_is_shown_in_lines_and_not_as_json(operator: Client, denied: Confirmation) -> None:
    html = operator.get(row(denied)).content.decode()

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
    operator: Client, agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(make_pending(agent, action=Action(AUDIENCE, "first", {"path": "/srv/needle"})), alice)
    make_pending(agent, action=Action(AUDIENCE, "second", {"path": "/srv/needle"}))
    monkeypatch.setattr("confirmhub.review.admin.SEARCHED", 1)

    def found(query: str) -> set[str]:
        html = operator.get(f"{QUEUE}?{query}").content.decode()
        return {name for name in ("first", "second") if name in html}

    assert found("q=needle") == {"second"}
    assert found("q=needle&status__exact=approved") == {"first"}
    assert found("") == {"first", "second"}

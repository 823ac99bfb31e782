"""The rules that operators keep: by whom, what is refused, and what is written down of each edit."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from confirmhub.confirmations.models import Rule

ADD_RULE = "/admin/confirmations/rule/add/"
FOUR_EYES = {
    "name": "four eyes",
    "rank": "1",
    "action_pattern": "payments.*",
    "mode": "approve",
    "approvals_needed": "2",
    "assurance": "page",
    "decide_within": "00:10:00",
    "redeem_within": "00:05:00",
    "max_open": "50",
    "max_waiting": "200",
}


@pytest.fixture
def payers(alice: User, bob: User) -> Group:
    """Two people who may decide."""
    group = Group.objects.create(name="payers")
    group.user_set.add(alice, bob)
    return group


def test_rules_are_kept_by_who_may(onlooker: Client, root: Client, payers: Group) -> None:
    assert onlooker.get(ADD_RULE).status_code == 403

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
        ({"remind_before": "00:10:00"}, "remind_before", "expires sooner than that"),
        ({"escalate_after": "00:05:00"}, "escalation_group", "both a time and a group"),
        ({"escalate_after": "0", "escalation_group": "{payers}"}, "escalate_after", "longer than nothing"),
        ({"assurance": "host"}, "assurance", "A host answers for the mode confirm alone"),
        ({"max_open": "0"}, "max_open", "A limit of nothing is the mode deny."),
        ({"max_waiting": "0"}, "max_waiting", "A limit of nothing is the mode deny."),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_at_its_field(
    root: Client, payers: Group, changed: dict[str, str], field: str, says: str
) -> None:
    changed = {name: value.format(payers=payers.pk) for name, value in changed.items()}
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


def test_an_edit_of_a_rule_is_written_down_with_what_was_and_what_is(
    administrator: Client, auditor: Client, payers: Group
) -> None:
    others = Group.objects.create(name="ot\u202ehers")
    others.user_set.set(payers.user_set.all())
    given = FOUR_EYES | {"approver_group": str(payers.pk)}
    administrator.post(ADD_RULE, given)
    rule = Rule.objects.get()

    administrator.post(
        f"/admin/confirmations/rule/{rule.pk}/change/",
        given | {"approvals_needed": "1", "approver_group": str(others.pk), "self_approval": "on"},
    )
    administrator.post(f"/admin/confirmations/rule/{rule.pk}/delete/", {"post": "yes"})

    assert not Rule.objects.exists()
    html = auditor.get("/admin/admin/logentry/?of=rules").content.decode()
    for said in (
        "approvals_needed: 2; ",
        "approvals_needed: 2 -&gt; 1",
        "approver_group: payers -&gt; ot⟨U+202E⟩hers",
        "self_approval: no -&gt; yes",
        "approver_group: ot⟨U+202E⟩hers",
        "added",
        "changed",
        "deleted",
        "adam",
    ):
        assert said in html
    assert "\u202e" not in html


def test_the_trail_is_for_those_who_may_see_it_and_is_not_changed(
    onlooker: Client, root: Client, payers: Group
) -> None:
    root.post(ADD_RULE, FOUR_EYES | {"approver_group": str(payers.pk)})

    assert onlooker.get("/admin/admin/logentry/").status_code == 403
    assert root.get("/admin/admin/logentry/").status_code == 200
    assert root.post("/admin/admin/logentry/add/").status_code == 403
    assert root.post("/admin/admin/logentry/1/delete/", {"post": "yes"}).status_code in (302, 403)


@pytest.mark.parametrize("who", ["operator", "auditor"])
def test_rules_are_for_administrators(request: pytest.FixtureRequest, who: str) -> None:
    client: Client = request.getfixturevalue(who)

    assert client.get("/admin/confirmations/rule/").status_code == 200
    assert client.get(ADD_RULE).status_code == 403

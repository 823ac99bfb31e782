"""What no longer waits for a person: theirs and their groups', each once, the newest first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.auth.models import Group, User

from confirmhub.confirmations import queries, rules
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode, Status, Verdict
from tests.factories import TRANSFER, decide, make_pending, make_user, principal_for


def ask(requester: Principal, name: str) -> Confirmation:
    return make_pending(requester, action=replace(TRANSFER, name=name))


@pytest.fixture
def settled(alice: User, bob: User) -> list[Confirmation]:
    """Alice's own, what her two groups decide on, her own that they decide on, and what is not hers."""
    for name in ("payers", "movers"):
        group = Group.objects.create(name=name)
        group.user_set.add(alice, make_user(f"another of {name}"))
        pattern = f"{name}.*"
        Rule.objects.create(
            name=name, rank=1, action_pattern=pattern, mode=Mode.APPROVE, approver_group=group
        )
    hers, his = principal_for(alice), principal_for(bob)
    own = decide(ask(hers, "own"), alice)
    paid = decide(ask(his, "payers.one"), alice, Verdict.DENY)
    moved = decide(ask(his, "movers.one"), alice)
    of_hers = decide(ask(hers, "payers.two"), User.objects.get(username="another of payers"))
    decide(ask(his, "his"), bob)
    ask(hers, "waits")
    ask(his, "movers.waits")
    return [of_hers, moved, paid, own]


def test_each_is_there_once_and_the_newest_first(alice: User, settled: list[Confirmation]) -> None:
    found = queries.list_settled_for(approver=alice, limit=10)

    assert found == settled
    assert queries.list_settled_for(approver=alice, limit=2) == settled[:2]
    seen = rules.may_see(approver=alice).exclude(status=Status.PENDING)
    assert set(found) == set(seen)


def test_who_is_deactivated_sees_none(alice: User, settled: list[Confirmation]) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)

    assert queries.list_settled_for(approver=alice, limit=10) == []

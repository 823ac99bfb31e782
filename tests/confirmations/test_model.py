"""The ledger against a plain model of itself: any sequence of moves gets the same answers from both."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from confirmhub.confirmations import audit, errors, evidence, ledger, queries
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.receipts import Receipt
from confirmhub.confirmations.states import Result, Status, Verdict
from tests.confirmations.clock import make_overdue
from tests.factories import TRANSFER, make_user, principal_for

ACTIONS = [replace(TRANSFER, name=name) for name in ("a", "b")]
LIKELY = st.sampled_from([True, True, True, True, True, False])
KEYS = st.sampled_from(["k1", "k2"])


@dataclass
class Expected:
    """A confirmation as anybody would think of it."""

    requester: Principal
    action: Action
    status: Status = Status.PENDING
    verdict: Verdict | None = None
    overdue: bool = False
    key: str | None = None
    result: Result | None = None
    moves: int = 1
    refusals: int = 0
    receipts: list[Receipt] = field(default_factory=list)

    @property
    def seen(self) -> Status:
        return Status.EXPIRED if self.overdue else self.status


REFUSAL: dict[Status, type[errors.ConfirmationError]] = {
    Status.PENDING: errors.Pending,
    Status.DENIED: errors.Denied,
    Status.CANCELLED: errors.Cancelled,
    Status.REVOKED: errors.Revoked,
    Status.EXPIRED: errors.Expired,
    Status.REDEEMED: errors.AlreadyRedeemed,
}


class Ledger(RuleBasedStateMachine):
    ids = Bundle("ids")

    @initialize()
    def people(self) -> None:
        # Each example in a transaction of its own that is taken back, as the one around a test is.
        self.example = transaction.atomic()
        self.example._from_testcase = True
        self.example.__enter__()
        self.alice, self.bob = make_user(f"a{uuid.uuid4()}"), make_user(f"b{uuid.uuid4()}")
        self.agents = [principal_for(self.alice), principal_for(self.bob)]
        self.expected: dict[uuid.UUID, Expected] = {}

    def person(self, requester: Principal) -> User:
        return self.alice if requester == self.agents[0] else self.bob

    @rule(target=ids, who=st.integers(0, 1), action=st.sampled_from(ACTIONS))
    def request(self, who: int, action: Action) -> uuid.UUID:
        requester = self.agents[who]
        row = ledger.request(requester=requester, action=action)
        for id_, known in self.expected.items():
            if (known.requester, known.action) == (requester, action) and known.status in (
                "pending",
                "approved",
            ):
                if not known.overdue:
                    assert row.id == id_
                    return row.id
                known.status, known.overdue, known.moves = Status.EXPIRED, False, known.moves + 1
        assert row.id not in self.expected
        self.expected[row.id] = Expected(requester, action)
        return row.id

    @rule(
        id_=ids,
        verdict=st.sampled_from([Verdict.APPROVE, Verdict.APPROVE, Verdict.DENY]),
        own=LIKELY,
        shown=LIKELY,
    )
    def decide(self, *, id_: uuid.UUID, verdict: Verdict, own: bool, shown: bool) -> None:
        known = self.expected[id_]
        approver = self.person(known.requester) if own else self.person(self.other(known.requester))
        digest = bytes(Confirmation.objects.get(id=id_).view_digest).hex() if shown else "0" * 64
        expected: type[errors.ConfirmationError] | None = None
        if not own:
            expected = errors.NotFound
        elif not shown:
            expected = errors.ViewChanged
        elif known.verdict != verdict and (known.verdict or known.seen != Status.PENDING):
            expected = errors.AlreadyDecided
        self.expect(
            expected,
            lambda: ledger.decide(
                confirmation_id=id_, approver=approver, verdict=verdict, digest_shown=digest
            ),
        )
        if expected is None and known.verdict is None:
            known.verdict, known.moves = verdict, known.moves + 1
            known.status = Status.APPROVED if verdict is Verdict.APPROVE else Status.DENIED

    @rule(id_=ids, own=LIKELY)
    def cancel(self, *, id_: uuid.UUID, own: bool) -> None:
        known = self.expected[id_]
        requester = known.requester if own else self.other(known.requester)
        expected = None if known.seen == Status.PENDING else REFUSAL.get(known.seen, errors.AlreadyDecided)
        self.move(known, Status.CANCELLED, expected if own else errors.NotFound)(
            lambda: ledger.cancel(confirmation_id=id_, requester=requester)
        )

    @rule(id_=ids, own=LIKELY, by_person=st.booleans())
    def revoke(self, *, id_: uuid.UUID, own: bool, by_person: bool) -> None:
        known = self.expected[id_]
        requester = known.requester if own else self.other(known.requester)
        expected = None if known.seen == Status.APPROVED else REFUSAL[known.seen]
        self.move(known, Status.REVOKED, expected if own else errors.NotFound)(
            lambda: ledger.revoke(
                confirmation_id=id_, revoker=self.person(requester) if by_person else requester, reason="r"
            )
        )

    @rule(id_=ids, own=LIKELY, same=LIKELY, key=KEYS)
    def redeem(self, *, id_: uuid.UUID, own: bool, same: bool, key: str) -> None:
        known = self.expected[id_]
        requester = known.requester if own else self.other(known.requester)
        action = known.action if same else next(other for other in ACTIONS if other != known.action)
        replayed = known.status == Status.REDEEMED and known.key == key
        expected: type[errors.ConfirmationError] | None = None
        if not own:
            expected = errors.NotFound
        elif not same:
            expected = errors.ActionDiffers
        elif known.seen != Status.APPROVED and not replayed:
            expected = REFUSAL[known.seen]
        receipt = self.expect(
            expected,
            lambda: ledger.redeem(
                confirmation_id=id_, requester=requester, action=action, redemption_key=key
            ),
        )
        if expected not in (None, errors.NotFound, errors.Pending) and known.refusals < 10:
            known.refusals, known.moves = known.refusals + 1, known.moves + 1
        if expected is None:
            assert (receipt.replayed, receipt.result) == (replayed, known.result)
            known.receipts.append(receipt)
            if not replayed:
                known.status, known.key, known.moves = Status.REDEEMED, key, known.moves + 1

    @rule(id_=ids, result=st.sampled_from(Result))
    def report(self, id_: uuid.UUID, result: Result) -> None:
        known = self.expected[id_]
        if not known.receipts:
            return
        expected = errors.AlreadyReported if known.result not in (None, result) else None
        self.expect(expected, lambda: ledger.report_outcome(receipt=known.receipts[-1], result=result))
        if known.result is None:
            known.result, known.moves = result, known.moves + 1

    @rule(id_=ids)
    def time_passes(self, id_: uuid.UUID) -> None:
        known = self.expected[id_]
        if known.overdue or known.status not in ("pending", "approved"):
            return
        row = Confirmation.objects.get(id=id_)
        past = {"decide_by": Now(), "requested_at": Now() - dt.timedelta(hours=1)}
        make_overdue(row, **(past if known.status == "pending" else {"redeem_by": Now()}))
        known.overdue = True

    @rule()
    def sweep(self) -> None:
        overdue = [known for known in self.expected.values() if known.overdue]
        assert ledger.expire_due(limit=100) == len(overdue)
        for known in overdue:
            known.status, known.overdue, known.moves = Status.EXPIRED, False, known.moves + 1

    @invariant()
    def the_rows_say_what_the_model_says(self) -> None:
        for id_, known in getattr(self, "expected", {}).items():
            row = queries.get_for_requester(confirmation_id=id_, requester=known.requester)
            assert (row.effective_status, row.redemption_key, row.event_count) == (
                known.seen,
                known.key,
                known.moves,
            )

    def teardown(self) -> None:
        audit.seal(limit=1_000)
        evidence.check(audit._everything())
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)

    def other(self, requester: Principal) -> Principal:
        return next(agent for agent in self.agents if agent != requester)

    def expect(self, refusal: type[errors.ConfirmationError] | None, call: Any) -> Any:
        if refusal is None:
            return call()
        with pytest.raises(refusal):
            call()
        return None

    def move(self, known: Expected, to: Status, refusal: type[errors.ConfirmationError] | None) -> Any:
        def make(call: Any) -> None:
            self.expect(refusal, call)
            if refusal is None:
                known.status, known.moves = to, known.moves + 1

        return make


def test_any_sequence_of_moves_gets_the_answers_of_a_plain_model(db: None) -> None:
    run_state_machine_as_test(
        Ledger,
        settings=settings(
            max_examples=settings().max_examples // 12,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

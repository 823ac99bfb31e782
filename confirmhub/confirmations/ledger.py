"""Every change of a confirmation, one function each; the only writer of its rows.

Here are the moves of those who ask and of those who decide. `spending` has the executor's, `oversight` those
of operators and of the clock; all are found here. Keyword-only. A refusal is a ConfirmationError and means
that nothing was changed; a return means that the change is committed, or joined where the docstring says so.
Time is Postgres's.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from confirmhub import display
from confirmhub.confirmations import errors, rows, rules, screen
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.models import Confirmation, Decision
from confirmhub.confirmations.oversight import (
    deny,
    escalate_due,
    expire_due,
    halt,
    lift,
    remind_due,
)
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.rows import MAX_REASON
from confirmhub.confirmations.spending import (
    MAX_DETAIL,
    redeem,
    redeem_with,
    report_outcome,
    resolve_outcome,
)
from confirmhub.confirmations.states import OPEN, Assurance, Mode, Status, Verdict

__all__ = [
    "MAX_DETAIL",
    "MAX_REASON",
    "answer_by_host",
    "cancel",
    "decide",
    "deny",
    "escalate_due",
    "expire_due",
    "halt",
    "lift",
    "redeem",
    "redeem_with",
    "remind_due",
    "report_outcome",
    "request",
    "resolve_outcome",
    "revoke",
]


@rows.refused_when_busy
@transaction.atomic
def request(
    *,
    requester: Principal,
    action: Action,
    summary: str = "",
    observation: Observation | None = None,
    idempotency_key: str | None = None,
    question: str = "",
    decide_within: dt.timedelta | None = None,
) -> Confirmation:
    """Ask for a confirmation, or get the open one back that was asked for before. Joins a transaction.

    `summary` is the agent's words, untrusted; `question` the tool author's, at most 200 characters;
    without one, and without the policy's, the action is named.
    `decide_within` may shorten the policy's time to decide, and never lengthens it.

    Raises:
        InvalidAction: Something is too long to be shown whole, or the idempotency key is malformed.
        ActionDiffers: The idempotency key was used for another action.
        PolicyDenies: The policy denies it, or nobody could decide on it.
        TooManyOpen: As many are open as the policy allows of one requester, or for one approver.
    """
    screen.refuse_what_cannot_be_shown(action=action, summary=summary, observation=observation)
    if idempotency_key is not None:
        rows.check_key(idempotency_key, of="idempotency")
    policy = rules.applying_to(action=action, requester=requester).within(decide_within)
    if policy.mode is Mode.DENY:
        raise errors.PolicyDenies

    # One request of a requester at a time, so that what is looked up here stays true until the insert.
    rows.take_turns(f"requester {requester.client_id} {requester.subject}")
    theirs = rows.asked_by(requester)
    same = theirs.filter(status__in=OPEN, digest=action.digest).annotate(overdue=rows.IS_OVERDUE)
    known: Confirmation | None = same.first()
    # Expiry is a fact before it is a status: an overdue row of the same action must not be found open.
    if known is not None and known.effective_status is Status.EXPIRED:
        rows.expire([known.id])
        known = None
    if idempotency_key is not None and (keyed := theirs.filter(idempotency_key=idempotency_key).first()):
        if bytes(keyed.digest) != action.digest:
            raise errors.ActionDiffers
        known = keyed
    if known is not None:
        return known
    rows.refuse_too_many(
        {"requester_client_id": requester.client_id, "requester_subject": requester.subject},
        most=policy.max_open,
    )
    approvers = rules.approvers_with_room(policy=policy, requester=requester)

    seen = observation or Observation(facts=(), fingerprint="")
    question = policy.question or question or f"Allow {action.name} once?"
    confirmation = Confirmation(
        requester_client_id=requester.client_id,
        requester_subject=requester.subject,
        audience=action.audience,
        action=action.name,
        arguments=action.canonical,
        digest=action.digest,
        summary=summary,
        facts=json.dumps(seen.facts),
        fingerprint=seen.fingerprint,
        question=question,
        tool_digest=action.tool_digest,
        view_digest=screen.view_digest(
            action=action, observation=seen, summary=summary, question=question, policy=policy
        ),
        idempotency_key=idempotency_key,
        policy=policy.name,
        mode=policy.mode,
        approvals_needed=policy.approvals_needed,
        approver_group_id=policy.approver_group_id,
        self_approval=policy.self_approval,
        sign_in_within=policy.sign_in_within,
        redeem_within=policy.redeem_within,
        assurance=policy.assurance,
        escalation_group_id=policy.escalation_group_id,
        decide_by=Now() + policy.decide_within,
        remind_at=Now() + policy.remind_after if policy.remind_after else None,
        escalate_at=Now() + policy.escalate_after if policy.escalate_after else None,
    )
    confirmation.save(force_insert=True)
    rows.tell(approvers, "asked", confirmation)
    rows.log(
        confirmation.id,
        "requested",
        actor=rows.name(requester),
        digest=action.digest.hex(),
        view_digest=confirmation.view_digest.hex(),
        policy=policy.name,
        mode=policy.mode,
    )
    if policy.mode is Mode.ALLOW:
        _approve(confirmation.id)
        rows.log(confirmation.id, "allow", actor=f"policy {policy.name}")
    confirmation.refresh_from_db()
    confirmation.is_new = True
    return confirmation


@rows.refused_when_busy
def decide(
    *,
    confirmation_id: uuid.UUID,
    approver: User,
    verdict: Verdict,
    digest_shown: str,
    reason: str = "",
) -> Confirmation:
    """Record one person's verdict, and settle the confirmation if that settles it.

    `digest_shown` is the view digest, in hex, of what was on their screen. The same verdict of the same
    person again changes nothing and returns the row. Joins a transaction.

    Raises:
        NotFound: No such confirmation, or not for their eyes.
        NotApprover: It was asked for them, and others decide on it.
        ViewChanged: It is not what was on the screen.
        AlreadyDecided: It is settled or past `decide_by`, or they gave the other verdict before.
        SignInTooOld: The policy asks for a fresher sign-in.
        InvalidAction: The reason is longer than 280 characters.
    """
    rows.check_reason(reason)
    return _decide(
        confirmation_id=confirmation_id,
        approver=approver,
        verdict=verdict,
        digest_shown=digest_shown,
        reason=reason,
        assurance=Assurance.PAGE,
    )


@rows.refused_when_busy
def answer_by_host(
    *, confirmation_id: uuid.UUID, requester: Principal, verdict: Verdict, digest_shown: str
) -> Confirmation:
    """Record what the acting user answered to their host, where the policy takes a host's word.

    `digest_shown` is the view digest, in hex, of the question that the host was given to show. Joins a
    transaction.

    Raises:
        NotFound: No such confirmation, or not theirs.
        PageNeeded: The policy wants the confirm page.
        ConfirmationError: As for `decide`.
    """
    asked = rows.of(confirmation_id, requester).first()
    person = rules.acting_user(subject=requester.subject).first()
    if asked is None or person is None:
        raise errors.NotFound
    if asked.assurance != Assurance.HOST:
        raise errors.PageNeeded
    return _decide(
        confirmation_id=confirmation_id,
        approver=person,
        verdict=verdict,
        digest_shown=digest_shown,
        reason="",
        assurance=Assurance.HOST,
    )


@transaction.atomic
def _decide(
    *,
    confirmation_id: uuid.UUID,
    approver: User,
    verdict: Verdict,
    digest_shown: str,
    reason: str,
    assurance: Assurance,
) -> Confirmation:
    # The quorum is counted under the row's lock: of two last approvals, the second waits here.
    row = Confirmation.objects.filter(id=confirmation_id)
    locked = rules.lock_for(confirmation_id=confirmation_id, approver=approver)
    confirmation = locked.confirmation
    if digest_shown != bytes(confirmation.view_digest).hex():
        raise errors.ViewChanged
    verdicts = dict(confirmation.decisions.values_list("approver", "verdict"))
    if verdicts.get(approver.pk) == verdict:
        return confirmation
    if approver.pk in verdicts or not locked.is_open:
        raise errors.AlreadyDecided
    if not locked.is_fresh:
        raise errors.SignInTooOld

    Decision.objects.create(
        confirmation=confirmation,
        approver=approver,
        verdict=verdict,
        reason=reason,
        view_digest=confirmation.view_digest,
        renderer=display.VERSION,
        assurance=assurance,
    )
    approvals = [*verdicts.values(), verdict].count(Verdict.APPROVE)
    if verdict is Verdict.DENY:
        row.update(status=Status.DENIED, settled_at=Now(), settled_reason=reason)
    elif approvals >= confirmation.approvals_needed:
        _approve(confirmation_id)
    confirmation.refresh_from_db()
    rows.log(
        confirmation_id,
        verdict,
        actor=rows.name(approver),
        view_digest=digest_shown,
        reason=reason,
        status=confirmation.status,
        assurance=assurance,
    )
    if confirmation.status != Status.PENDING:
        if confirmation.requester_subject != str(approver.pk):
            acting = rules.acting_user(subject=confirmation.requester_subject)
            rows.tell(acting, "settled", confirmation)
        rows.left_pending(confirmation_id, by=approver)
    return confirmation


@rows.refused_when_busy
@transaction.atomic
def cancel(*, confirmation_id: uuid.UUID, requester: Principal | User, reason: str = "") -> None:
    """Take a question back that nobody has decided on. Joins a transaction.

    Its requester may, and an operator who has the permission to change confirmations. `reason` is for the
    record, in words of ours or of the operator.

    Raises:
        NotFound: No such confirmation, or not theirs.
        InvalidAction: The reason is longer than 280 characters.
        ConfirmationError: It is no longer pending; the class says what it is.
    """
    rows.check_reason(reason)
    if isinstance(requester, Principal):
        row = rows.of(confirmation_id, requester)
    else:
        rows.check_permission(requester, rows.CHANGE)
        row = Confirmation.objects.filter(id=confirmation_id)
    moved = row.filter(status=Status.PENDING, decide_by__gt=Now())
    if moved.update(status=Status.CANCELLED, settled_at=Now(), settled_reason=reason) != 1:
        raise rows.refusal(row, if_approved=errors.AlreadyDecided())
    rows.log(
        confirmation_id,
        "cancelled",
        actor=rows.name(requester),
        **({"reason": reason} if reason else {}),
    )
    rows.left_pending(confirmation_id)


@rows.refused_when_busy
@transaction.atomic
def revoke(*, confirmation_id: uuid.UUID, revoker: User | Principal, reason: str) -> None:
    """Take an approval back before it is spent. Joins a transaction.

    A requester may (the guard does, when the target has changed), an approver, and an operator who has
    the permission to change confirmations.

    Raises:
        NotFound: No such confirmation, or not theirs to revoke.
        InvalidAction: The reason is longer than 280 characters.
        ConfirmationError: It is not approved any more, or not yet; the class says what it is.
    """
    rows.check_reason(reason)
    if isinstance(revoker, Principal):
        row = rows.of(confirmation_id, revoker)
    else:
        row = Confirmation.objects.filter(id=confirmation_id)
        found = row.first()
        operator = revoker.is_active and revoker.has_perm(rows.CHANGE)
        if found is None or not (operator or rules.may_decide(confirmation=found, approver=revoker)):
            raise errors.NotFound
    moved = row.filter(status=Status.APPROVED, redeem_by__gt=Now())
    if moved.update(status=Status.REVOKED, settled_reason=reason) != 1:
        # Approved after all: it became so between the statement and this look.
        raise rows.refusal(row, if_approved=errors.Busy(retry_after=errors.SOON))
    rows.log(confirmation_id, "revoked", actor=rows.name(revoker), reason=reason)
    rows.tell_service("revoked", confirmation_id)


def _approve(confirmation_id: uuid.UUID) -> None:
    Confirmation.objects.filter(id=confirmation_id).update(
        status=Status.APPROVED, settled_at=Now(), redeem_by=Now() + F("redeem_within")
    )

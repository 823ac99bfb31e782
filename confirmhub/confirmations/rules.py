"""The policies that operators keep as rows: which one applies, and whom it lets decide."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import BooleanField, DateTimeField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from confirmhub.confirmations import errors, rows
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.policies import BUILT_IN, Policy, matches
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode, Status


@dataclass(frozen=True, slots=True)
class Locked:
    """A confirmation whose row is locked, and somebody who may decide on it."""

    confirmation: Confirmation
    is_open: bool
    """It is pending and its time is not up."""

    is_fresh: bool
    """Their last sign-in is as fresh as the policy asks."""


def applying_to(*, action: Action, requester: Principal) -> Policy:
    """The policy of the first rule by rank that fits the audience, the action's name and the client."""
    for rule in Rule.objects.order_by("rank", "id"):
        audience_fits = rule.audience in ("", action.audience)
        client_fits = rule.client_id in ("", requester.client_id)
        if audience_fits and client_fits and matches(pattern=rule.action_pattern, name=action.name):
            return rule.policy
    return BUILT_IN


def approvers_with_room(*, policy: Policy, requester: Principal) -> list[User]:
    """Those who may be asked. For them requests take turns, so that the count of what waits holds.

    Raises:
        PolicyDenies: There is nobody, or there are fewer than approvals are needed.
        TooManyOpen: As much waits for them as the policy allows.
    """
    if policy.mode is Mode.ALLOW:
        return []
    if policy.mode is Mode.CONFIRM:
        rows.take_turns(f"acting user {requester.subject}")
        waiting: dict[str, object] = {"mode": policy.mode, "requester_subject": requester.subject}
    else:
        rows.take_turns(f"group {policy.approver_group_id}")
        waiting = {"mode": policy.mode, "approver_group_id": policy.approver_group_id}
    groups = [policy.approver_group_id]
    people = list(
        _approvers(
            mode=policy.mode, groups=groups, self_approval=policy.self_approval, subject=requester.subject
        )
    )
    if not people:
        raise errors.PolicyDenies(_why_nobody(policy=policy, subject=requester.subject))
    if len(people) < policy.approvals_needed:
        # Nobody must be made to wait for a yes that cannot come.
        raise errors.PolicyDenies("Fewer people could decide on this than have to approve it.")
    rows.refuse_too_many(waiting, most=policy.max_waiting, statuses=[Status.PENDING])
    return people


def may_decide(*, confirmation: Confirmation, approver: User) -> bool:
    """Whether the policy that was copied onto this confirmation lets this person decide on it."""
    return _while_active(approver).filter(_asked_of(approver), pk=confirmation.pk).exists()


def lock_for(*, confirmation_id: uuid.UUID, approver: User) -> Locked:
    """Lock a confirmation for a decision of this person, and say what is true of both at this moment.

    Raises:
        NotFound: There is none, or it is not for their eyes.
        NotApprover: Their agent asked, and others decide.
    """
    active = Q(Exists(User.objects.filter(pk=approver.pk, is_active=True)))
    since = ExpressionWrapper(Now() - OuterRef("sign_in_within"), DateTimeField())
    fresh = Q(Exists(User.objects.filter(pk=approver.pk, last_login__gt=since)))
    facts = {
        "seen": active & (_own(approver) | _asked_of(approver)),
        "theirs": active & _asked_of(approver),
        "open": Q(status=Status.PENDING, decide_by__gt=Now()),
        "fresh": Q(sign_in_within__isnull=True) | fresh,
    }
    row = Confirmation.objects.filter(id=confirmation_id).select_for_update(no_key=True, of=("self",))
    found = row.annotate(
        **{name: ExpressionWrapper(fact, BooleanField()) for name, fact in facts.items()}
    ).first()
    held = {name: found is not None and bool(getattr(found, name)) for name in facts}
    if found is None or not held["seen"]:
        raise errors.NotFound
    if not held["theirs"]:
        raise errors.NotApprover
    return Locked(found, is_open=held["open"], is_fresh=held["fresh"])


def asked_now(*, confirmation: Confirmation) -> QuerySet[User]:
    """Those who may decide on it now and have not."""
    groups = [confirmation.approver_group_id]
    if confirmation.escalated_at is not None:
        groups.append(confirmation.escalation_group_id)
    people = _approvers(
        mode=confirmation.mode,
        groups=groups,
        self_approval=confirmation.self_approval,
        subject=confirmation.requester_subject,
    )
    return people.exclude(pk__in=confirmation.decisions.values("approver"))


def may_see(*, approver: User) -> QuerySet[Confirmation]:
    """What this person may decide on, could have, or has asked for by their own agent."""
    return _while_active(approver).filter(_own(approver) | _asked_of(approver))


def sees(*, confirmation: Confirmation, user_id: int, groups: Collection[int]) -> bool:
    """What `may_see` says of an active person who is in these groups, for a row that is read already."""
    if confirmation.requester_subject == str(user_id):
        return True
    escalated = confirmation.escalated_at is not None and confirmation.escalation_group_id in groups
    return confirmation.mode == Mode.APPROVE and (confirmation.approver_group_id in groups or escalated)


def parts_to_see(*, approver: User) -> list[QuerySet[Confirmation]]:
    """What `may_see` finds, in parts that share no row; an index finds the newest of each part alone."""
    seen = _while_active(approver)
    groups = list(approver.groups.values_list("pk", flat=True))
    others = seen.filter(~_own(approver), mode=Mode.APPROVE)
    of_groups = [others.filter(approver_group=group) for group in groups]
    escalated = others.filter(escalated_at__isnull=False).exclude(approver_group__in=groups)
    return [
        seen.filter(_own(approver)),
        *of_groups,
        *(escalated.filter(escalation_group=group) for group in groups),
    ]


def waiting_for(*, approver: User) -> QuerySet[Confirmation]:
    """What this person may decide on and has not."""
    return _while_active(approver).filter(_asked_of(approver)).exclude(decisions__approver=approver)


def acting_user(*, subject: str) -> QuerySet[User]:
    """The person behind a subject, while active."""
    return User.objects.filter(pk=_pk(subject), is_active=True)


def _approvers(
    *, mode: str, groups: Collection[int | None], self_approval: bool, subject: str
) -> QuerySet[User]:
    if mode == Mode.CONFIRM:
        return acting_user(subject=subject)
    members = User.objects.filter(is_active=True, groups__in=groups).distinct()
    return members if self_approval else members.exclude(pk=_pk(subject))


def _why_nobody(*, policy: Policy, subject: str) -> str:
    """Why there is nobody who could be asked, in words for who asks."""
    if policy.mode is Mode.CONFIRM:
        return errors.NOBODY
    themselves = acting_user(subject=subject).filter(groups=policy.approver_group_id)
    return errors.ALONE if themselves.exists() else errors.NO_MEMBER


def _own(approver: User) -> Q:
    return Q(requester_subject=str(approver.pk))


def _asked_of(approver: User) -> Q:
    groups = approver.groups.values("pk")
    escalated = Q(escalated_at__isnull=False, escalation_group__in=groups)
    in_group = Q(mode=Mode.APPROVE) & (Q(approver_group__in=groups) | escalated)
    return (Q(mode=Mode.CONFIRM) & _own(approver)) | (in_group & (Q(self_approval=True) | ~_own(approver)))


def _while_active(approver: User) -> QuerySet[Confirmation]:
    return Confirmation.objects.filter(Exists(User.objects.filter(pk=approver.pk, is_active=True)))


def _pk(subject: str) -> int:
    """The key of the user behind a subject, which our own authorization server made of it; 0 is nobody's."""
    return int(subject) if subject.isdigit() and len(subject) < 10 else 0

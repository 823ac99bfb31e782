"""The policies that operators keep as rows: which one applies, and whom it lets decide."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import Exists, Q, QuerySet
from django.db.models.functions import Now

from confirmhub.confirmations import errors, rows
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.policies import BUILT_IN, Policy, matches
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode, Status


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
        PolicyDenies: There is nobody.
        TooManyOpen: As much waits for them as the policy allows.
    """
    if policy.mode is Mode.ALLOW:
        return []
    pending = Confirmation.objects.filter(status=Status.PENDING, mode=policy.mode)
    if policy.mode is Mode.CONFIRM:
        rows.take_turns(f"acting user {requester.subject}")
        waiting = pending.filter(requester_subject=requester.subject)
    else:
        rows.take_turns(f"group {policy.approver_group_id}")
        waiting = pending.filter(approver_group=policy.approver_group_id)
    people = list(_approvers(policy, requester))
    if not people:
        raise errors.PolicyDenies("Nobody could decide on this: the approvers are unknown or deactivated.")
    rows.refuse_too_many(waiting, most=policy.max_waiting)
    return people


def may_decide(*, confirmation: Confirmation, approver: User) -> bool:
    """Whether the policy that was copied onto this confirmation lets this person decide on it."""
    return _while_active(approver).filter(_asked_of(approver), pk=confirmation.pk).exists()


def refuse_who_may_not_decide(*, confirmation: Confirmation, approver: User) -> None:
    """Hold a person to the policy that was copied onto this confirmation.

    Raises:
        NotFound: It is not for their eyes.
        NotApprover: Their agent asked, and others decide.
    """
    if not may_see(approver=approver).filter(pk=confirmation.pk).exists():
        raise errors.NotFound
    if not may_decide(confirmation=confirmation, approver=approver):
        raise errors.NotApprover


def may_see(*, approver: User) -> QuerySet[Confirmation]:
    """What this person may decide on, could have, or has asked for by their own agent."""
    return _while_active(approver).filter(Q(requester_subject=str(approver.pk)) | _asked_of(approver))


def waiting_for(*, approver: User) -> QuerySet[Confirmation]:
    """What this person may decide on and has not."""
    return _while_active(approver).filter(_asked_of(approver)).exclude(decisions__approver=approver)


def signed_in_lately(*, confirmation: Confirmation, approver: User) -> bool:
    """Whether the person's last sign-in is as fresh as the policy asks, by Postgres's clock."""
    if confirmation.sign_in_within is None:
        return True
    since = Now() - confirmation.sign_in_within
    return User.objects.filter(pk=approver.pk, last_login__gt=since).exists()


def acting_user(*, subject: str) -> User | None:
    """The active person behind a subject."""
    return User.objects.filter(pk=_pk(subject), is_active=True).first()


def _approvers(policy: Policy, requester: Principal) -> QuerySet[User]:
    people = User.objects.filter(is_active=True)
    acting_user = _pk(requester.subject)
    if policy.mode is Mode.CONFIRM:
        return people.filter(pk=acting_user)
    members = people.filter(groups=policy.approver_group_id)
    return members if policy.self_approval else members.exclude(pk=acting_user)


def _asked_of(approver: User) -> Q:
    own = Q(requester_subject=str(approver.pk))
    in_group = Q(mode=Mode.APPROVE, approver_group__in=approver.groups.values("pk"))
    return (Q(mode=Mode.CONFIRM) & own) | (in_group & (Q(self_approval=True) | ~own))


def _while_active(approver: User) -> QuerySet[Confirmation]:
    return Confirmation.objects.filter(Exists(User.objects.filter(pk=approver.pk, is_active=True)))


def _pk(subject: str) -> int:
    """The key of the user behind a subject, which our own authorization server made of it; 0 is nobody's."""
    return int(subject) if subject.isdigit() and len(subject) < 10 else 0

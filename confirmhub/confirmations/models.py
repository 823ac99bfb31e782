"""The rows, and what must be true of them whoever writes.

`ledger` and `outbox` write them. What these constraints cannot say, since each sees one version of one
row, the triggers of migration 0002 say: moves go along `states.EDGES`, what was asked never changes,
and events, decisions and outcomes are only ever added.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import ClassVar, cast

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length, Now

from confirmhub.confirmations.actions import Json
from confirmhub.confirmations.fields import ExactTextField
from confirmhub.confirmations.ids import new_id
from confirmhub.confirmations.policies import BUILT_IN, Policy
from confirmhub.confirmations.sending import Chore, Notice
from confirmhub.confirmations.states import FINAL, OPEN, Mode, Result, Status, Verdict

__all__ = [
    "Checkpoint",
    "Chore",
    "Confirmation",
    "Decision",
    "Event",
    "Notice",
    "Outcome",
    "Rule",
    "Seal",
]

models.BinaryField.register_lookup(Length)


def _known(values: type[Status | Verdict | Result | Mode]) -> list[tuple[str, str]]:
    return [(str(value), str(value).title()) for value in values]


class Confirmation(models.Model):
    """One person's or quorum's consent, asked for one exact action."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)

    requester_client_id = models.CharField(max_length=255)
    requester_subject = models.CharField(max_length=255)

    audience = models.CharField(max_length=500)
    action = models.CharField(max_length=100)
    arguments = models.TextField()  # canonical ASCII JSON; never jsonb, which folds what differs
    digest = models.BinaryField()
    summary = ExactTextField(blank=True)  # the agent's words
    facts = models.TextField(default="[]")  # ASCII JSON: pairs of our label and an untrusted value
    fingerprint = models.CharField(max_length=128, blank=True)
    question = models.CharField(max_length=200)  # the tool author's words
    tool_digest = models.BinaryField(default=bytes)  # of the tool's definition, where the requester has one
    view_digest = models.BinaryField()
    idempotency_key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - null is "none given"

    policy = models.CharField(max_length=100)
    mode = models.CharField(max_length=10, choices=_known(Mode))
    approvals_needed = models.PositiveSmallIntegerField()
    approver_group = models.ForeignKey(Group, models.PROTECT, null=True, related_name="+")
    self_approval = models.BooleanField(default=False)
    sign_in_within = models.DurationField(null=True)
    redeem_within = models.DurationField()

    status = models.CharField(max_length=10, choices=_known(Status), default=Status.PENDING)
    requested_at = models.DateTimeField(db_default=Now())
    decide_by = models.DateTimeField()
    redeem_by = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)  # when it left pending
    settled_reason = ExactTextField(blank=True, default="")  # of a denial or a revocation
    redeemed_at = models.DateTimeField(null=True)
    redemption_key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - null is "not redeemed"

    event_count = models.PositiveIntegerField(default=0)
    event_head = models.BinaryField(default=bytes)  # the newest event's hash
    sealed_events = models.PositiveIntegerField(default=0)  # how many of them a checkpoint has sealed

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="confirmation_status_known", condition=Q(status__in=sorted(Status))),
            models.CheckConstraint(name="confirmation_mode_known", condition=Q(mode__in=sorted(Mode))),
            models.CheckConstraint(
                name="confirmation_digests_are_sha256",
                condition=Q(digest__length=32, view_digest__length=32),
            ),
            models.CheckConstraint(
                name="confirmation_approve_names_a_group",
                condition=~Q(mode=Mode.APPROVE) | Q(approver_group__isnull=False),
            ),
            models.CheckConstraint(
                name="confirmation_needs_an_approval", condition=Q(approvals_needed__gte=1)
            ),
            models.CheckConstraint(
                name="confirmation_decide_by_after_request",
                condition=Q(decide_by__gt=F("requested_at")),
            ),
            models.CheckConstraint(
                name="confirmation_redeem_by_once_approved",
                condition=~Q(status__in=[Status.APPROVED, Status.REDEEMED, Status.REVOKED])
                | Q(redeem_by__isnull=False),
            ),
            models.CheckConstraint(
                name="confirmation_settled_at_iff_not_pending",
                condition=Q(status=Status.PENDING, settled_at__isnull=True)
                | (~Q(status=Status.PENDING) & Q(settled_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="confirmation_spent_iff_redeemed",
                condition=Q(status=Status.REDEEMED, redeemed_at__isnull=False, redemption_key__isnull=False)
                | (~Q(status=Status.REDEEMED) & Q(redeemed_at__isnull=True, redemption_key__isnull=True)),
            ),
            # An agent that retries gets its open confirmation back, instead of asking the same person
            # the same thing twice.
            models.UniqueConstraint(
                name="confirmation_one_open_per_action",
                fields=["requester_client_id", "requester_subject", "digest"],
                condition=Q(status__in=sorted(OPEN)),
            ),
            models.UniqueConstraint(
                name="confirmation_idempotency_key",
                fields=["requester_client_id", "requester_subject", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            # ledger.expire_due
            models.Index(
                name="confirmation_pending_due",
                fields=["decide_by"],
                condition=Q(status=Status.PENDING),
            ),
            models.Index(
                name="confirmation_approved_due",
                fields=["redeem_by"],
                condition=Q(status=Status.APPROVED),
            ),
            # queries.list_waiting_for, list_settled_for, list_recent_of
            models.Index(name="confirmation_of_subject", fields=["requester_subject", "-requested_at"]),
            # audit.seal
            models.Index(
                name="confirmation_to_seal",
                fields=["id"],
                condition=Q(status__in=sorted(FINAL), sealed_events__lt=F("event_count")),
            ),
            # audit.retire, queries.list_for_operator
            models.Index(name="confirmation_by_time", fields=["requested_at"]),
            # queries.list_settled_for
            models.Index(
                name="confirmation_newest_of_group",
                fields=["approver_group", "-requested_at"],
                condition=Q(approver_group__isnull=False),
            ),
            # rules.waiting_for, rules.approvers_with_room
            models.Index(
                name="confirmation_pending_of",
                fields=["requester_subject", "decide_by"],
                condition=Q(status=Status.PENDING),
            ),
            models.Index(
                name="confirmation_of_group",
                fields=["approver_group", "decide_by"],
                condition=Q(status=Status.PENDING),
            ),
            # queries.list_without_outcome
            models.Index(
                name="confirmation_redeemed",
                fields=["redeemed_at"],
                condition=Q(status=Status.REDEEMED),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.id} ({self.status})"

    @property
    def effective_status(self) -> Status:
        """The status, with expiry as the fact it is. For rows of `queries`, which ask Postgres's clock."""
        return Status.EXPIRED if getattr(self, "overdue", False) else Status(self.status)

    @property
    def argument_items(self) -> list[tuple[str, Json]]:
        return list(cast(dict[str, Json], json.loads(self.arguments)).items())

    @property
    def fact_items(self) -> list[tuple[str, str]]:
        return [(label, value) for label, value in json.loads(self.facts)]


class Rule(models.Model):
    """A policy that operators keep: the first by rank that fits an action applies to it."""

    name = models.CharField(max_length=100, unique=True)
    rank = models.IntegerField(help_text="The lowest rank that fits applies.")
    audience = models.CharField(max_length=500, blank=True, help_text="The exact resource URL; empty: any.")
    action_pattern = models.CharField(max_length=100, default="*", help_text="* stands for any characters.")
    client_id = models.CharField(max_length=255, blank=True, help_text="The exact client id; empty: any.")

    mode = models.CharField(max_length=10, choices=_known(Mode))
    question = models.CharField(max_length=200, blank=True, help_text="Empty: the tool author's words.")
    approver_group = models.ForeignKey(Group, models.PROTECT, null=True, blank=True, related_name="+")
    approvals_needed = models.PositiveSmallIntegerField(default=1)
    self_approval = models.BooleanField(default=False)
    sign_in_within = models.DurationField(null=True, blank=True, help_text="Empty: any sign-in will do.")
    decide_within = models.DurationField(default=BUILT_IN.decide_within)
    redeem_within = models.DurationField(default=BUILT_IN.redeem_within)
    max_open = models.PositiveIntegerField(default=BUILT_IN.max_open)
    max_waiting = models.PositiveIntegerField(default=BUILT_IN.max_waiting)

    class Meta:
        ordering: ClassVar = ["rank", "id"]
        constraints: ClassVar = [
            models.CheckConstraint(name="rule_mode_known", condition=Q(mode__in=sorted(Mode))),
            models.CheckConstraint(
                name="rule_approve_names_a_group",
                condition=~Q(mode=Mode.APPROVE) | Q(approver_group__isnull=False),
                violation_error_message="Name the group whose members approve.",
            ),
            models.CheckConstraint(
                name="rule_one_approval_unless_approve",
                condition=Q(approvals_needed=1) | Q(mode=Mode.APPROVE, approvals_needed__gte=1),
                violation_error_message="Only the mode approve takes more than one approval.",
            ),
            models.CheckConstraint(
                name="rule_times_are_positive",
                condition=Q(decide_within__gt=timedelta(), redeem_within__gt=timedelta())
                & (Q(sign_in_within__isnull=True) | Q(sign_in_within__gt=timedelta())),
                violation_error_message="Every time must be longer than nothing.",
            ),
            models.CheckConstraint(
                name="rule_limits_are_positive",
                condition=Q(max_open__gte=1, max_waiting__gte=1),
                violation_error_message="A limit of nothing is the mode deny.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def policy(self) -> Policy:
        return Policy(
            name=self.name,
            mode=Mode(self.mode),
            question=self.question,
            approver_group_id=self.approver_group_id,
            approvals_needed=self.approvals_needed,
            self_approval=self.self_approval,
            sign_in_within=self.sign_in_within,
            decide_within=self.decide_within,
            redeem_within=self.redeem_within,
            max_open=self.max_open,
            max_waiting=self.max_waiting,
        )


class Decision(models.Model):
    """One approver's verdict, and the digest of what was on their screen."""

    confirmation = models.ForeignKey(Confirmation, models.PROTECT, related_name="decisions")
    approver = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=7, choices=_known(Verdict))
    reason = ExactTextField(blank=True)
    view_digest = models.BinaryField()
    renderer = models.CharField(max_length=100)
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(name="decision_one_per_approver", fields=["confirmation", "approver"]),
            models.CheckConstraint(name="decision_verdict_known", condition=Q(verdict__in=sorted(Verdict))),
            models.CheckConstraint(
                name="decision_view_digest_is_sha256", condition=Q(view_digest__length=32)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} of {self.confirmation_id}"


class Outcome(models.Model):
    """What came of the execution. No row for a redeemed confirmation means that nobody knows."""

    confirmation = models.OneToOneField(
        Confirmation, models.PROTECT, primary_key=True, related_name="outcome"
    )
    result = models.CharField(max_length=9, choices=_known(Result))
    detail = ExactTextField(blank=True)
    reported_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="outcome_result_known", condition=Q(result__in=sorted(Result))),
        ]

    def __str__(self) -> str:
        return f"{self.result}: {self.confirmation_id}"


class Event(models.Model):
    """One line of the append-only log, chained per confirmation by the hash of the one before."""

    confirmation = models.ForeignKey(Confirmation, models.PROTECT, related_name="events")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    actor = models.CharField(max_length=600)
    at = models.DateTimeField()
    detail = models.TextField()  # canonical ASCII JSON
    hash = models.BinaryField()

    class Meta:
        ordering: ClassVar = ["confirmation_id", "seq"]
        constraints: ClassVar = [
            models.UniqueConstraint(name="event_seq", fields=["confirmation", "seq"]),
            models.CheckConstraint(name="event_hash_is_sha256", condition=Q(hash__length=32)),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"


class Checkpoint(models.Model):
    """One link of the chain that seals the logs of all finished confirmations."""

    seq = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    count = models.PositiveIntegerField()
    hash = models.BinaryField()

    class Meta:
        ordering: ClassVar = ["seq"]
        constraints: ClassVar = [
            models.CheckConstraint(name="checkpoint_hash_is_sha256", condition=Q(hash__length=32)),
        ]

    def __str__(self) -> str:
        return f"checkpoint {self.seq}"


class Seal(models.Model):
    """How far a confirmation's log had come at a checkpoint. It outlives the confirmation."""

    checkpoint = models.ForeignKey(Checkpoint, models.PROTECT, related_name="seals")
    confirmation_id = models.UUIDField()
    event_count = models.PositiveIntegerField()
    head = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(name="seal_once", fields=["confirmation_id", "event_count"]),
            models.CheckConstraint(name="seal_head_is_sha256", condition=Q(head__length=32)),
        ]

    def __str__(self) -> str:
        return f"{self.confirmation_id} up to {self.event_count}"

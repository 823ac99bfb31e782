"""The rows, and what must be true of them whoever writes.

`ledger` and `outbox` write them. What these constraints cannot say, since each sees one version of one
row, the triggers of migration 0002 say: moves go along `states.EDGES`, what was asked never changes,
events, decisions and outcomes are only ever added, and each line of a log follows the last.
"""

from __future__ import annotations

import json
from typing import ClassVar, cast

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length, Now

from confirmhub.confirmations.actions import Json
from confirmhub.confirmations.fields import ExactTextField, known
from confirmhub.confirmations.ids import new_id
from confirmhub.confirmations.ruling import Halt, HaltEvent, Rule
from confirmhub.confirmations.sealing import Checkpoint, Seal
from confirmhub.confirmations.sending import Chore, Hook, Notice
from confirmhub.confirmations.states import FINAL, OPEN, Assurance, Mode, Result, Status, Verdict

MAX_QUESTION = 200  # characters

__all__ = [
    "Checkpoint",
    "Chore",
    "Confirmation",
    "Decision",
    "Event",
    "Halt",
    "HaltEvent",
    "Hook",
    "Notice",
    "Outcome",
    "Rule",
    "Seal",
]

models.BinaryField.register_lookup(Length)

# So many refused redemptions of one confirmation are for an operator to look at: a retry that goes on and on,
# or somebody who tries.
REFUSED_OFTEN = 3


class Confirmation(models.Model):
    """One person's or quorum's consent, asked for one exact action."""

    is_new = False  # whether the call of `ledger.request` that returned it has made it

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
    question = models.CharField(max_length=MAX_QUESTION)  # the tool author's words
    tool_digest = models.BinaryField(default=bytes)  # of the tool's definition, where the requester has one
    view_digest = models.BinaryField()
    idempotency_key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - null is "none given"

    policy = models.CharField(max_length=100)
    mode = models.CharField(max_length=10, choices=known(Mode))
    approvals_needed = models.PositiveSmallIntegerField()
    approver_group = models.ForeignKey(Group, models.PROTECT, null=True, related_name="+")
    self_approval = models.BooleanField(default=False)
    sign_in_within = models.DurationField(null=True)
    redeem_within = models.DurationField()
    assurance = models.CharField(max_length=10, choices=known(Assurance), default=Assurance.PAGE)
    remind_at = models.DateTimeField(null=True)
    escalate_at = models.DateTimeField(null=True)
    escalation_group = models.ForeignKey(Group, models.PROTECT, null=True, related_name="+")

    status = models.CharField(max_length=10, choices=known(Status), default=Status.PENDING)
    requested_at = models.DateTimeField(db_default=Now())
    decide_by = models.DateTimeField()
    redeem_by = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)  # when it left pending
    settled_reason = ExactTextField(blank=True, default="")  # of a denial or a revocation
    redeemed_at = models.DateTimeField(null=True)
    redemption_key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - null is "not redeemed"

    reminded_at = models.DateTimeField(null=True)
    escalated_at = models.DateTimeField(null=True)  # since when the escalation group may decide too
    refusals = models.PositiveSmallIntegerField(default=0)  # redemptions refused, up to a bound
    has_outcome = models.BooleanField(default=False, db_default=False)  # written with the log's line of it

    event_count = models.PositiveIntegerField(default=0)
    event_head = models.BinaryField(default=bytes)  # the newest event's hash
    sealed_events = models.PositiveIntegerField(default=0)  # how many of them a checkpoint has sealed

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="confirmation_status_known", condition=Q(status__in=sorted(Status))),
            models.CheckConstraint(name="confirmation_mode_known", condition=Q(mode__in=sorted(Mode))),
            models.CheckConstraint(
                name="confirmation_assurance_known", condition=Q(assurance__in=sorted(Assurance))
            ),
            models.CheckConstraint(
                name="confirmation_digests_are_sha256",
                condition=Q(digest__length=32, view_digest__length=32),
            ),
            models.CheckConstraint(
                name="confirmation_approve_names_a_group",
                condition=~Q(mode=Mode.APPROVE) | Q(approver_group__isnull=False),
            ),
            models.CheckConstraint(
                name="confirmation_escalates_to_a_group",
                condition=Q(escalate_at__isnull=True, escalated_at__isnull=True)
                | Q(escalation_group__isnull=False),
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
            # queries.list_page
            models.Index(name="confirmation_of_client", fields=["requester_client_id", "-id"]),
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
            # rules.waiting_for, after an escalation
            models.Index(
                name="confirmation_of_escalation",
                fields=["escalation_group", "decide_by"],
                condition=Q(status=Status.PENDING, escalated_at__isnull=False),
            ),
            # oversight.remind_due, oversight.escalate_due
            models.Index(
                name="confirmation_to_remind",
                fields=["remind_at"],
                condition=Q(status=Status.PENDING, reminded_at__isnull=True, remind_at__isnull=False),
            ),
            models.Index(
                name="confirmation_to_escalate",
                fields=["escalate_at"],
                condition=Q(status=Status.PENDING, escalated_at__isnull=True, escalate_at__isnull=False),
            ),
            # figures.count, queries.list_for_operator
            models.Index(
                name="confirmation_without_outcome",
                fields=["redeemed_at"],
                condition=Q(status=Status.REDEEMED, has_outcome=False),
            ),
            # queries.list_for_operator and its filters
            models.Index(name="confirmation_by_status", fields=["status", "requested_at"]),
            # figures.count
            models.Index(
                name="confirmation_unanswered",
                fields=["decide_by"],
                condition=Q(status=Status.EXPIRED, redeem_by__isnull=True),
            ),
            models.Index(
                name="confirmation_refused_often",
                fields=["requested_at"],
                condition=Q(refusals__gte=REFUSED_OFTEN),
            ),
            # queries.list_recent_of, and the filter by requester
            models.Index(
                name="confirmation_of_requester",
                fields=["requester_client_id", "requester_subject", "-requested_at"],
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


class Decision(models.Model):
    """One approver's verdict, and the digest of what was on their screen."""

    confirmation = models.ForeignKey(Confirmation, models.PROTECT, related_name="decisions")
    approver = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=7, choices=known(Verdict))
    reason = ExactTextField(blank=True)
    view_digest = models.BinaryField()
    renderer = models.CharField(max_length=100)
    assurance = models.CharField(max_length=10, choices=known(Assurance), default=Assurance.PAGE)
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(name="decision_one_per_approver", fields=["confirmation", "approver"]),
            models.CheckConstraint(name="decision_verdict_known", condition=Q(verdict__in=sorted(Verdict))),
            models.CheckConstraint(
                name="decision_assurance_known", condition=Q(assurance__in=sorted(Assurance))
            ),
            models.CheckConstraint(
                name="decision_view_digest_is_sha256", condition=Q(view_digest__length=32)
            ),
        ]
        # figures.decided
        indexes: ClassVar = [models.Index(name="decision_by_time", fields=["decided_at"])]

    def __str__(self) -> str:
        return f"{self.verdict} of {self.confirmation_id}"


class Outcome(models.Model):
    """What came of the execution. No row for a redeemed confirmation means that nobody knows."""

    confirmation = models.OneToOneField(
        Confirmation, models.PROTECT, primary_key=True, related_name="outcome"
    )
    result = models.CharField(max_length=9, choices=known(Result))
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
        # figures.refused
        indexes: ClassVar = [models.Index(name="event_refused", fields=["at"], condition=Q(kind="refused"))]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"

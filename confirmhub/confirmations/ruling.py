"""The rows that operators keep: the policies that apply, and the stops that are in force."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from confirmhub.confirmations.fields import ExactTextField, known
from confirmhub.confirmations.policies import BUILT_IN, Policy
from confirmhub.confirmations.states import Assurance, Mode


class Rule(models.Model):
    """A policy that operators keep: the first by rank that fits an action applies to it."""

    name = models.CharField(max_length=100, unique=True)
    rank = models.IntegerField(help_text="The lowest rank that fits applies.")
    audience = models.CharField(max_length=500, blank=True, help_text="The exact resource URL; empty: any.")
    action_pattern = models.CharField(max_length=100, default="*", help_text="* stands for any characters.")
    client_id = models.CharField(max_length=255, blank=True, help_text="The exact client id; empty: any.")

    mode = models.CharField(max_length=10, choices=known(Mode))
    question = models.CharField(max_length=200, blank=True, help_text="Empty: the tool author's words.")
    approver_group = models.ForeignKey(Group, models.PROTECT, null=True, blank=True, related_name="+")
    approvals_needed = models.PositiveSmallIntegerField(default=1)
    self_approval = models.BooleanField(default=False)
    sign_in_within = models.DurationField(null=True, blank=True, help_text="Empty: any sign-in will do.")
    decide_within = models.DurationField(default=BUILT_IN.decide_within)
    redeem_within = models.DurationField(default=BUILT_IN.redeem_within)
    assurance = models.CharField(
        max_length=10,
        choices=known(Assurance),
        default=Assurance.PAGE,
        help_text="Page: decided on the confirm page. Host: the person's host may answer for them.",
    )
    remind_before = models.DurationField(null=True, blank=True, help_text="Empty: nobody is reminded.")
    escalate_after = models.DurationField(null=True, blank=True, help_text="Empty: never.")
    escalation_group = models.ForeignKey(Group, models.PROTECT, null=True, blank=True, related_name="+")
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
                & (Q(sign_in_within__isnull=True) | Q(sign_in_within__gt=timedelta()))
                & (Q(remind_before__isnull=True) | Q(remind_before__gt=timedelta()))
                & (Q(escalate_after__isnull=True) | Q(escalate_after__gt=timedelta())),
                violation_error_message="Every time must be longer than nothing.",
            ),
            models.CheckConstraint(name="rule_assurance_known", condition=Q(assurance__in=sorted(Assurance))),
            models.CheckConstraint(
                name="rule_host_answers_for_the_acting_user",
                condition=Q(assurance=Assurance.PAGE) | Q(mode=Mode.CONFIRM, sign_in_within__isnull=True),
                violation_error_message="A host answers for the person it acts for alone, who may not be "
                "signed in: only with the mode confirm, and no limit on the sign-in.",
            ),
            models.CheckConstraint(
                name="rule_escalates_to_a_group",
                condition=Q(escalate_after__isnull=True, escalation_group__isnull=True)
                | Q(mode=Mode.APPROVE, escalate_after__isnull=False, escalation_group__isnull=False),
                violation_error_message="To escalate takes the mode approve, a time and a group.",
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
            assurance=Assurance(self.assurance),
            remind_before=self.remind_before,
            escalate_after=self.escalate_after,
            escalation_group_id=self.escalation_group_id,
        )


class Halt(models.Model):
    """While it is not lifted, nothing that it covers is redeemed. Set once, lifted once, never changed."""

    client_id = models.CharField(max_length=255, blank=True)  # empty: any
    subject = models.CharField(max_length=255, blank=True)  # empty: any
    action_pattern = models.CharField(max_length=100, default="*")  # * stands for any characters
    action_like = models.CharField(max_length=200)  # the same for LIKE
    reason = ExactTextField()
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    set_at = models.DateTimeField(db_default=Now())
    lift_reason = ExactTextField(blank=True, default="")
    lifted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "stop"
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                name="halt_lifted_by_somebody",
                condition=Q(lifted_at__isnull=True, lifted_by__isnull=True)
                | Q(lifted_at__isnull=False, lifted_by__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            # rows.REDEEM
            models.Index(name="halt_in_force", fields=["id"], condition=Q(lifted_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"halt {self.pk}"


class HaltEvent(models.Model):
    """One line of the append-only log of stops: one chain for all of them, so that none can be left out.

    A trigger of migration 0002 writes it, when a stop is set or lifted, whoever does that.
    """

    seq = models.PositiveIntegerField(primary_key=True)
    kind = models.CharField(max_length=20)
    actor = models.CharField(max_length=600)
    at = models.DateTimeField()
    detail = models.TextField()  # JSON; names the stop and what it covers
    hash = models.BinaryField()

    class Meta:
        ordering: ClassVar = ["seq"]
        constraints: ClassVar = [
            models.CheckConstraint(name="haltevent_hash_is_sha256", condition=Q(hash__length=32)),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"

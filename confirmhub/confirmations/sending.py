"""The rows of the outbox: whom to tell, and what is due. `outbox` leases them, and the moves write them."""

from __future__ import annotations

import enum
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from confirmhub.confirmations.fields import known


class Kind(enum.StrEnum):
    """What a notice tells of."""

    ASKED = "asked"
    REMINDER = "reminder"  # nobody has decided, and the time runs out
    ESCALATED = "escalated"  # it was asked of others, who did not decide
    SETTLED = "settled"  # it left pending
    REVOKED = "revoked"
    LAPSED = "lapsed"  # the yes was not used in time
    OUTCOME = "outcome"


class Hook(models.Model):
    """Where a service hears of what became of its own confirmations."""

    client_id = models.CharField(max_length=255, unique=True)
    url = models.URLField(max_length=500)
    secrets = models.TextField()  # one a line, the newest first; each signs
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"hook {self.pk}"


class Notice(models.Model):
    """One person or service to tell of one thing: a line of the outbox, written with what it tells of."""

    confirmation = models.ForeignKey("confirmations.Confirmation", models.PROTECT, related_name="notices")
    kind = models.CharField(max_length=10, choices=known(Kind))
    recipient = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    hook = models.ForeignKey(Hook, models.CASCADE, null=True, related_name="+")
    # Which of the recipient's destinations, as `notifications` numbers them; 0: their account's mail.
    destination = models.BigIntegerField(default=0, db_default=0)
    channel = models.CharField(max_length=10, blank=True, default="", db_default="")  # of the destination
    created_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    given_up_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)  # nobody needs it any more

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                name="notice_once", fields=["confirmation", "kind", "recipient", "destination"]
            ),
            models.UniqueConstraint(name="notice_once_to_a_hook", fields=["confirmation", "kind", "hook"]),
            models.CheckConstraint(
                name="notice_to_one",
                condition=Q(recipient__isnull=False, hook__isnull=True)
                | Q(recipient__isnull=True, hook__isnull=False),
            ),
            models.CheckConstraint(name="notice_kind_known", condition=Q(kind__in=sorted(Kind))),
            models.CheckConstraint(
                name="notice_ends_once",
                condition=Q(sent_at__isnull=True, given_up_at__isnull=True)
                | Q(sent_at__isnull=True, withdrawn_at__isnull=True)
                | Q(given_up_at__isnull=True, withdrawn_at__isnull=True),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                name="notice_to_send",
                fields=["due_at"],
                condition=Q(sent_at__isnull=True, given_up_at__isnull=True, withdrawn_at__isnull=True),
            ),
            # queries.list_for_operator, the filter by given-up notices
            models.Index(
                name="notice_given_up",
                fields=["confirmation"],
                condition=Q(given_up_at__isnull=False),
            ),
            # figures.count
            models.Index(
                name="notice_given_up_at",
                fields=["given_up_at"],
                condition=Q(given_up_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.confirmation_id}"


class Chore(models.Model):
    """One tick of a periodic task, in the outbox too, so that no broker can lose it."""

    task = models.CharField(max_length=100)
    slot = models.BigIntegerField()  # which tick; two beats make one row
    created_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    done_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(name="chore_once", fields=["task", "slot"])]
        indexes: ClassVar = [
            models.Index(name="chore_to_do", fields=["created_at"], condition=Q(done_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.task} {self.slot}"

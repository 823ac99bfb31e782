"""The rows of the outbox: whom to tell, and what is due. `outbox` leases them, and the moves write them."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Notice(models.Model):
    """One person to tell of one thing: a line of the outbox, written with what it tells of."""

    confirmation = models.ForeignKey("confirmations.Confirmation", models.PROTECT, related_name="notices")
    kind = models.CharField(max_length=10, choices=[("asked", "Asked"), ("settled", "Settled")])
    recipient = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    given_up_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(name="notice_once", fields=["confirmation", "kind", "recipient"]),
            models.CheckConstraint(
                name="notice_sent_or_given_up",
                condition=Q(sent_at__isnull=True) | Q(given_up_at__isnull=True),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                name="notice_to_send",
                fields=["due_at"],
                condition=Q(sent_at__isnull=True, given_up_at__isnull=True),
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

"""The chain that seals the logs of finished confirmations. `confirmhub_seal` of migration 0002 writes it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q


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

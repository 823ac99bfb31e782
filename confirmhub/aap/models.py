"""What a client of the protocol sent that a confirmation has no column for."""

from __future__ import annotations

from django.db import models

from confirmhub.confirmations.models import Confirmation


class Submission(models.Model):
    """The fields of one submission beside its tool and its arguments, as a client reads them back.

    It is never changed, and leaves with its confirmation, whenever the audit retires that.
    """

    # Migration 0002 makes the constraint: the database itself deletes the row with its confirmation.
    confirmation = models.OneToOneField(
        Confirmation, models.CASCADE, primary_key=True, related_name="aap_submission", db_constraint=False
    )
    rest = models.TextField()  # ASCII JSON with sorted keys: never jsonb, which folds what differs

    def __str__(self) -> str:
        return f"submission of {self.confirmation_id}"

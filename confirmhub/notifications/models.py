"""Where a person wants to be told, and when not."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class Via(models.TextChoices):
    """The channels that a person may choose."""

    EMAIL = "email", "E-mail"
    SLACK = "slack", "Slack"
    TEAMS = "teams", "Microsoft Teams"
    NTFY = "ntfy", "ntfy"
    WEBHOOK = "webhook", "Webhook"


class Destination(models.Model):
    """One way to reach a person. Who has none that is active gets mail at their account's address."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="destinations")
    channel = models.CharField(max_length=10, choices=Via.choices)
    address = models.CharField(max_length=500, blank=True)  # a URL; of mail nothing: the account says it
    secrets = models.TextField(blank=True)  # one a line, the newest first
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True)  # the last success
    failure = models.CharField(max_length=200, blank=True)  # of the last attempt, in words of ours

    class Meta:
        ordering: ClassVar = ["id"]
        constraints: ClassVar = [
            models.UniqueConstraint(name="destination_once", fields=["user", "channel", "address"]),
            models.CheckConstraint(name="destination_channel_known", condition=Q(channel__in=Via.values)),
            models.CheckConstraint(
                name="destination_has_an_address_unless_mail",
                condition=Q(channel=Via.EMAIL, address="") | (~Q(channel=Via.EMAIL) & ~Q(address="")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.channel} of user {self.user_id}"

    @property
    def secret_list(self) -> tuple[str, ...]:
        return tuple(self.secrets.split())


class QuietHours(models.Model):
    """When a person is not to be told. Over midnight where it ends before it starts."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="quiet_hours"
    )
    starts = models.TimeField()
    ends = models.TimeField()
    zone = models.CharField(max_length=64)  # of the IANA database

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="quiet_hours_are_not_all_day", condition=~Q(starts=F("ends"))),
        ]

    def __str__(self) -> str:
        return f"{self.starts:%H:%M} to {self.ends:%H:%M} {self.zone}"

"""What the API says of a confirmation. Times are UTC, in ISO 8601, with a Z."""

from __future__ import annotations

import datetime as dt
import json

from django.conf import settings
from rest_framework import serializers

from confirmhub.confirmations.actions import Json
from confirmhub.confirmations.models import Confirmation, Decision, Outcome


class TimeField(serializers.DateTimeField):
    """A moment, in UTC whatever the process's time zone is."""

    def __init__(self) -> None:
        super().__init__(read_only=True, default_timezone=dt.UTC)


class HexField(serializers.Field[bytes, str, str, bytes]):
    """Bytes, as lowercase hex digits."""

    def __init__(self) -> None:
        super().__init__(read_only=True)

    def to_representation(self, value: bytes) -> str:
        return bytes(value).hex()


class DecisionSerializer(serializers.Serializer[Decision]):
    """One person's verdict. Who it was is not the requester's to know."""

    verdict = serializers.CharField(read_only=True)
    reason = serializers.CharField(read_only=True)
    decided_at = TimeField()


class OutcomeSerializer(serializers.Serializer[Outcome]):
    """What came of the execution."""

    result = serializers.CharField(read_only=True)
    detail = serializers.CharField(read_only=True)
    reported_at = TimeField()


class FactField(serializers.Field[list[tuple[str, str]], object, list[dict[str, str]], object]):
    """What was observed of the target."""

    def __init__(self) -> None:
        super().__init__(source="fact_items", read_only=True)

    def to_representation(self, value: list[tuple[str, str]]) -> list[dict[str, str]]:
        return [{"label": label, "value": said} for label, said in value]


class ConfirmationSerializer(serializers.Serializer[Confirmation]):
    """A confirmation, as its requester reads it."""

    id = serializers.UUIDField(read_only=True)
    status = serializers.CharField(source="effective_status", read_only=True)
    audience = serializers.CharField(read_only=True)
    action = serializers.CharField(read_only=True)
    arguments = serializers.SerializerMethodField()
    facts = FactField()
    fingerprint = serializers.CharField(read_only=True)
    page = serializers.SerializerMethodField(help_text="Where the person decides.")
    digest = HexField()
    view_digest = HexField()
    requested_at = TimeField()
    decide_by = TimeField()
    settled_at = TimeField()
    redeem_by = TimeField()
    redeemed_at = TimeField()
    decisions = serializers.SerializerMethodField()
    # None until the executor has reported; after a redemption that means that nobody knows.
    outcome = OutcomeSerializer(read_only=True, allow_null=True, default=None)

    def get_page(self, confirmation: Confirmation) -> str:
        return f"{settings.PUBLIC_URL}/confirm/{confirmation.id}"

    def get_arguments(self, confirmation: Confirmation) -> Json:
        # What is accepted survives this exactly: see `confirmations.actions`.
        arguments: Json = json.loads(confirmation.arguments)
        return arguments

    def get_decisions(self, confirmation: Confirmation) -> list[object]:
        decisions = sorted(confirmation.decisions.all(), key=lambda one: (one.decided_at, one.pk))
        return [DecisionSerializer(decision).data for decision in decisions]


class ListedSerializer(serializers.Serializer[dict[str, object]]):
    """One page of confirmations."""

    confirmations = ConfirmationSerializer(many=True, read_only=True)
    next_cursor = serializers.UUIDField(read_only=True, allow_null=True)


def etag(confirmation: Confirmation) -> str:
    """What changes with the confirmation, and with the one thing that happens to it by itself."""
    return f'"{confirmation.event_count}-{confirmation.effective_status}"'

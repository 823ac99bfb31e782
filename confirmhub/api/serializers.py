"""What the API says of a confirmation. Times are UTC, in ISO 8601, with a Z."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from django.conf import settings
from django.utils.http import parse_etags
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from confirmhub.confirmations.actions import Json
from confirmhub.confirmations.models import Confirmation, Decision, Outcome
from confirmhub.confirmations.states import Result, Status, Verdict

_SHA256 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_FACT = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "value": {"type": "string"}},
    "required": ["label", "value"],
}


class TimeField(serializers.DateTimeField):
    """A moment, in UTC whatever the process's time zone is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(read_only=True, default_timezone=dt.UTC, **options)


@extend_schema_field(_SHA256)
class HexField(serializers.Field[bytes, str, str, bytes]):
    """Bytes, as lowercase hex digits."""

    def __init__(self) -> None:
        super().__init__(read_only=True)

    def to_representation(self, value: bytes) -> str:
        return bytes(value).hex()


class DecisionSerializer(serializers.Serializer[Decision]):
    """One person's verdict. Who it was is not the requester's to know."""

    verdict = serializers.ChoiceField(choices=list(Verdict), read_only=True)
    reason = serializers.CharField(read_only=True)
    decided_at = TimeField()


class OutcomeSerializer(serializers.Serializer[Outcome]):
    """What came of the execution."""

    result = serializers.ChoiceField(choices=list(Result), read_only=True)
    detail = serializers.CharField(read_only=True)
    reported_at = TimeField()


@extend_schema_field({"type": "array", "items": _FACT})
class FactField(serializers.Field[list[tuple[str, str]], object, list[dict[str, str]], object]):
    """What was observed of the target."""

    def __init__(self) -> None:
        super().__init__(source="fact_items", read_only=True)

    def to_representation(self, value: list[tuple[str, str]]) -> list[dict[str, str]]:
        return [{"label": label, "value": said} for label, said in value]


class ConfirmationSerializer(serializers.Serializer[Confirmation]):
    """A confirmation, as its requester reads it."""

    id = serializers.UUIDField(read_only=True)
    status = serializers.ChoiceField(choices=list(Status), source="effective_status", read_only=True)
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
    settled_at = TimeField(allow_null=True)
    redeem_by = TimeField(allow_null=True)
    redeemed_at = TimeField(allow_null=True)
    decisions = serializers.SerializerMethodField()
    # None until the executor has reported; after a redemption that means that nobody knows.
    outcome = OutcomeSerializer(read_only=True, allow_null=True, default=None)

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_page(self, confirmation: Confirmation) -> str:
        return f"{settings.PUBLIC_URL}/confirm/{confirmation.id}"

    @extend_schema_field({"type": "object", "additionalProperties": {}})
    def get_arguments(self, confirmation: Confirmation) -> Json:
        # What is accepted survives this exactly: see `confirmations.actions`.
        arguments: Json = json.loads(confirmation.arguments)
        return arguments

    @extend_schema_field(DecisionSerializer(many=True))
    def get_decisions(self, confirmation: Confirmation) -> list[object]:
        decisions = sorted(confirmation.decisions.all(), key=lambda one: (one.decided_at, one.pk))
        return [DecisionSerializer(decision).data for decision in decisions]


class ListedSerializer(serializers.Serializer[dict[str, object]]):
    """One page of confirmations."""

    confirmations = ConfirmationSerializer(many=True, read_only=True)
    next_cursor = serializers.UUIDField(read_only=True, allow_null=True)


class ReportedSerializer(serializers.Serializer[dict[str, object]]):
    """What the executor said came of it."""

    result = serializers.ChoiceField(choices=list(Result), read_only=True)
    detail = serializers.CharField(read_only=True)


class RedeemedSerializer(serializers.Serializer[dict[str, object]]):
    """The receipt of a spent confirmation. Where `replayed`, do not act: another attempt of this key has."""

    confirmation_id = serializers.UUIDField(read_only=True)
    digest = HexField()
    redemption_key = serializers.CharField(read_only=True)
    redeemed_at = TimeField()
    replayed = serializers.BooleanField(read_only=True)
    # None while nobody has reported.
    outcome = ReportedSerializer(read_only=True, allow_null=True)


class SignedSerializer(serializers.Serializer[dict[str, object]]):
    """A receipt to keep."""

    receipt = serializers.CharField(
        read_only=True, help_text="A JWS in compact form (RFC 7515), signed by Ed25519."
    )


class KeysSerializer(serializers.Serializer[dict[str, object]]):
    """A JWK set (RFC 7517), the key that signs first."""

    keys = serializers.ListField(child=serializers.DictField(child=serializers.CharField()), read_only=True)


class ProblemSerializer(serializers.Serializer[dict[str, object]]):
    """A refusal (RFC 9457). `type` is for programs and stays; the words are for people, and may change."""

    type = serializers.CharField(read_only=True)
    title = serializers.CharField(read_only=True)
    status = serializers.IntegerField(read_only=True)
    detail = serializers.CharField(required=False, help_text="What it was this time.")
    reason = serializers.CharField(
        required=False, help_text="A person's words, why they denied, revoked or stopped it. Untrusted."
    )
    redeemed_at = serializers.DateTimeField(required=False)
    errors = serializers.DictField(  # type: ignore[assignment] # the framework takes it off the class
        required=False, help_text="What is wrong with each field that is named."
    )


def etag(confirmation: Confirmation) -> str:
    """What changes with the confirmation, and with the one thing that happens to it by itself."""
    return f'"{confirmation.event_count}-{confirmation.effective_status}"'


def is_known(tag: str, if_none_match: str) -> bool:
    """Whether the caller has it already (RFC 9110 section 13.1.2: any, or one of these, weak or not)."""
    given = parse_etags(if_none_match)
    return given == ["*"] or tag in [one.removeprefix("W/") for one in given]

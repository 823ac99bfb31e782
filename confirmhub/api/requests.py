"""What the API takes. What it does not know it refuses: a misspelt field must not go unnoticed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from rest_framework import serializers

from confirmhub.confirmations import ledger, screen
from confirmhub.confirmations.states import Result, Status


class Taken(serializers.Serializer[Any]):
    """A body, or the query of an address, of which every field is known."""

    default_error_messages: ClassVar = {"invalid": "Send a JSON object with the fields of this."}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (unknown := sorted(set(data) - set(self.fields))):
            known = ", ".join(sorted(self.fields)) or "none"
            raise serializers.ValidationError(
                {name[:100]: [f"There is no such field. There are: {known}."] for name in unknown[:10]}
            )
        return super().to_internal_value(data)


class Text(serializers.CharField):
    """A text as it came: neither trimmed nor made of another type."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("This must be a string.")
        return super().to_internal_value(data)


class Arguments(serializers.DictField):
    """The arguments of an action."""

    default_error_messages: ClassVar = {
        "not_a_dict": 'Send a JSON object with the name and the value of each, such as {{"cents": 1250}}.'
    }


class Choice(serializers.ChoiceField):
    """One of a few words."""

    def __init__(self, choices: Iterable[str], **options: Any) -> None:
        told = f"There is no such value. There are: {', '.join(choices)}."
        super().__init__(choices=list(choices), error_messages={"invalid_choice": told}, **options)


class Fact(Taken):
    """What the service observed of the target: a label of its own, and a value."""

    label = Text(max_length=100)  # type: ignore[assignment] # the framework takes declared fields off the class
    value = Text(max_length=screen.MAX_SHOWN, allow_blank=True)


class Asked(Taken):
    """A confirmation to ask for."""

    action = Text(max_length=100, help_text="What will be done, such as payments.transfer.")
    arguments = Arguments(help_text="Every value that decides what will be done. People read exactly these.")
    summary = Text(
        required=False,
        allow_blank=True,
        default="",
        max_length=screen.MAX_SUMMARY,
        help_text="Why, in the caller's words; shown as such.",
    )
    on_behalf_of = Text(
        required=False,
        allow_null=True,
        default=None,
        max_length=150,
        help_text="For services: the user name of the person it is asked for. Without it, the policy's "
        "approver group decides.",
    )
    question = Text(
        required=False,
        allow_null=True,
        default=None,
        max_length=200,
        help_text="For services: what people are asked, such as Pay from the shared account?",
    )
    facts: serializers.ListSerializer[Any] = serializers.ListSerializer(
        child=Fact(error_messages={"invalid": "Send a JSON object with a label and a value."}),
        error_messages={"not_a_list": "Send a JSON list of objects, each with a label and a value."},
        required=False,
        default=list,
        max_length=32,
        help_text="For services: what it observed.",
    )
    fingerprint = Text(
        required=False,
        allow_blank=True,
        default="",
        max_length=128,
        help_text="For services: stands for the target's state; read it again before acting.",
    )


class About(Taken):
    """The action that is about to be taken, and the caller's key for this attempt."""

    action = Text(max_length=100)
    arguments = Arguments()
    redemption_key = Text(
        max_length=200,
        help_text="Your own random key. The same key gets the same receipt again, marked replayed.",
    )


def about(data: dict[str, Any]) -> dict[str, Any]:
    """The checked fields of an `About`, of which thousands come each second.

    What is plainly right is taken as it is; of all else the serializer says what is wrong.
    """
    match data:
        case {"action": str(action), "arguments": dict(), "redemption_key": str(key), **other} if (
            not other and _is_plain(action, most=100) and _is_plain(key, most=200)
        ):
            return data
    given = About(data=data)
    given.is_valid(raise_exception=True)
    return dict(given.validated_data)


def _is_plain(text: str, *, most: int) -> bool:
    return 0 < len(text) <= most and text.isascii() and text.isprintable()


class Report(Taken):
    """What came of an execution."""

    redemption_key = Text(max_length=200, help_text="The key that it was redeemed with.")
    result = Choice(list(Result))
    detail = Text(required=False, allow_blank=True, default="", max_length=ledger.MAX_DETAIL)


class Withdrawal(Taken):
    """A question taken back."""

    reason = Text(required=False, allow_blank=True, default="", max_length=ledger.MAX_REASON)


class Page(Taken):
    """Which confirmations to list."""

    status = Choice(list(Status), required=False, help_text="Only those.")
    action = Text(max_length=100, required=False, help_text="Only those of exactly this name.")
    cursor = serializers.UUIDField(
        required=False,
        help_text="What next_cursor of the page before said.",
        error_messages={"invalid": "Send what next_cursor of the page before said."},
    )
    limit = serializers.IntegerField(min_value=1, max_value=100, default=20)


class Patience(Taken):
    """How long to wait."""

    timeout = serializers.IntegerField(min_value=0, max_value=55, default=30, help_text="Seconds.")


def query(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The fields of a URL's query.

    Raises:
        ValidationError: One was sent twice.
    """
    found: dict[str, str] = {}
    for name, value in fields:
        if name in found:
            raise serializers.ValidationError({name[:100]: ["Send this once."]})
        found[name] = value
    return found

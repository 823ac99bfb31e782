"""What the page of a person's notices accepts. Anything else is refused whole, and changes nothing."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django import forms

from confirmhub.notifications import outward
from confirmhub.notifications.models import Via

MOST = 10  # destinations of one person
MAX_TOKEN = 200  # characters
# What a channel posts to; for mail, the account says it.
ADDRESSES = {
    Via.SLACK: "the URL of the channel's incoming webhook, such as https://hooks.slack.com/services/T0/B0/x",
    Via.TEAMS: "the URL of the workflow that posts the webhook's alerts in the chat or channel",
    Via.NTFY: "the topic's URL, such as https://ntfy.sh/my-topic",
    Via.WEBHOOK: "the URL that takes the messages, each signed as Standard Webhooks says",
}
ZONES = sorted(available_timezones())


class DestinationForm(forms.Form):
    """A new way to be told."""

    channel = forms.ChoiceField(choices=Via.choices, error_messages={"invalid_choice": "Choose a channel."})
    address = forms.CharField(required=False)
    token = forms.RegexField(
        r"\A[\x21-\x7e]*\Z",
        max_length=MAX_TOKEN,
        required=False,
        error_messages={"invalid": "The access token must be without spaces, in ASCII."},
    )

    def clean(self) -> dict[str, Any]:
        """Hold the address to what may be posted to."""
        fields: dict[str, Any] = super().clean() or {}
        channel, address = fields.get("channel"), fields.get("address", "")
        if channel == Via.EMAIL:
            return {"channel": channel, "address": "", "token": ""}
        if channel is None:
            return fields
        if not address:
            self.add_error("address", f"Enter {ADDRESSES[Via(channel)]}.")
            return fields
        try:
            parts = outward.check(address)
        except outward.UnusableAddressError as exc:
            self.add_error("address", str(exc))
            return fields
        if channel == Via.NTFY and (parts.query or not parts.path.rpartition("/")[2]):
            self.add_error("address", "The address must end in the topic, such as https://ntfy.sh/my-topic.")
        # Typed before another channel was chosen, where there is no such field.
        return fields if channel == Via.NTFY else fields | {"token": ""}


class QuietForm(forms.Form):
    """The hours in which nobody is to be told."""

    starts = forms.TimeField(error_messages={"invalid": "Write the times as 22:00."})
    ends = forms.TimeField(error_messages={"invalid": "Write the times as 07:00."})
    zone = forms.ChoiceField(
        choices=[(zone, zone) for zone in ZONES], error_messages={"invalid_choice": "Choose a time zone."}
    )

    def clean(self) -> dict[str, Any]:
        """Refuse hours without an end."""
        fields: dict[str, Any] = super().clean() or {}
        if fields.get("starts") is not None and fields.get("starts") == fields.get("ends"):
            self.add_error("ends", "The quiet hours must end at another time than they start.")
        return fields

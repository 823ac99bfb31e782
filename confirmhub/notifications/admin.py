"""Where services hear of their own confirmations: an operator writes the address and gives out the secret."""

from __future__ import annotations

import base64
import binascii
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from confirmhub import display
from confirmhub.confirmations.models import Hook
from confirmhub.notifications import outward
from confirmhub.notifications.channels.webhook import new_secret
from confirmhub.oauth.models import Service

MOST_SECRETS = 3


class HookForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs alone
    """Refuses what could not be delivered or verified while somebody is there to mend it."""

    class Meta:
        model = Hook
        fields = ("client_id", "url", "secrets", "is_active")
        labels: ClassVar = {"client_id": "Service", "url": "Address"}
        help_texts: ClassVar = {
            "url": "Events of this service's confirmations are posted here, by https.",
            "secrets": "Give the service the first line. One a line: each signs, so that a new one can be "
            "put on top and the old one taken away later.",
        }
        widgets: ClassVar = {"url": forms.TextInput, "secrets": forms.Textarea(attrs={"rows": 3})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = Service.objects.order_by("name", "client_id").values_list("client_id", "name")
        services = [(client_id, f"{display.text(name)} ({client_id})") for client_id, name in found]
        self.fields["client_id"] = forms.ChoiceField(label="Service", choices=services)
        if not self.instance.pk:
            self.fields["secrets"].initial = new_secret()

    def clean_url(self) -> str:
        url = str(self.cleaned_data["url"])
        try:
            outward.check(url)
        except outward.UnusableAddressError as exc:
            raise forms.ValidationError(str(exc)) from exc
        return url

    def clean_secrets(self) -> str:
        lines = [line.strip() for line in str(self.cleaned_data["secrets"]).splitlines() if line.strip()]
        if not 1 <= len(lines) <= MOST_SECRETS:
            raise forms.ValidationError(f"Give 1 to {MOST_SECRETS} secrets, one a line.")
        if not all(map(_is_secret, lines)):
            raise forms.ValidationError(
                "A secret is whsec_ and 24 to 64 random bytes in base64, as Standard Webhooks says."
            )
        return "\n".join(lines)


@admin.register(Hook)
class HookAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    form = HookForm
    list_display = ("service", "address", "is_active")
    view_on_site = False

    def get_fields(self, request: HttpRequest, obj: Hook | None = None) -> tuple[str, ...]:
        """Without the secrets for who may only look."""
        shown = ("client_id", "url", "is_active")
        return (*shown, "secrets") if self.has_change_permission(request, obj) else shown

    @admin.display(description="service", ordering="client_id")
    def service(self, hook: Hook) -> str:
        return display.text(hook.client_id)

    @admin.display(description="address")
    def address(self, hook: Hook) -> str:
        return display.text(hook.url)


def _is_secret(line: str) -> bool:
    try:
        raw = base64.b64decode(line.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        return False
    return line.startswith("whsec_") and 24 <= len(raw) <= 64

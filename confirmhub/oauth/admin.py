"""Connected hosts and services in Django's admin: an operator makes, blocks and looks; nobody mints tokens.

The toolkit registers these classes under the names in `defaults`; its own would let an operator
write another person's name into a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextInputWidget
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from oauth2_provider.forms import ApplicationForm

from confirmhub import display
from confirmhub.oauth import connections, resources, services
from confirmhub.oauth.clients import label
from confirmhub.oauth.models import AccessToken, Client, Code, RefreshToken, Service
from confirmhub.oauth.scopes import BASE

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponse


BLOCKED = "The program was blocked by an operator."
REMOVED = "The program was removed by an operator."


class ProgramAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """What hosts and services have in common: a secret that is shown once, and ways to shut them out."""

    search_fields = ("client_id", "name")
    view_on_site = False
    actions = ("block", "renew_secret")

    @admin.display(description="host")
    def host(self, client: Client) -> str:
        shown = label(client)
        return f"{shown.host} (verified)" if shown.verified else shown.host

    @admin.display(description="calls itself")
    def own_name(self, client: Client) -> str:
        return display.text(client.name)

    @admin.display(description="blocked", ordering="blocked")
    def state(self, client: Client) -> str:
        return "blocked" if client.blocked else "no"

    @admin.action(description="Block the selected; their tokens stop working", permissions=["change"])
    def block(self, request: HttpRequest, queryset: QuerySet[Client]) -> None:
        ids = list(queryset.values_list("client_id", flat=True))
        blocked = queryset.update(blocked=True)
        for client_id in ids:
            connections.withdraw(client_id=client_id, reason=BLOCKED)
        self.message_user(request, f"{blocked} blocked.")

    @admin.action(
        description="Make a new secret; the old one and its tokens stop working", permissions=["change"]
    )
    def renew_secret(self, request: HttpRequest, queryset: QuerySet[Client]) -> HttpResponse | None:
        client = queryset.first() if queryset.count() == 1 else None
        if client is None or client.client_type != Client.CLIENT_CONFIDENTIAL:
            self.message_user(
                request, "Select one program that has a secret.", level=messages.ERROR, fail_silently=True
            )
            return None
        secret = services.renew_secret(client=client)
        self.log_change(request, client, "New secret.")
        return self._secret_page(request, client, secret)

    def save_model(self, request: HttpRequest, obj: Client, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        super().save_model(request, obj, form, change)
        if obj.blocked:
            connections.withdraw(client_id=obj.client_id, reason=BLOCKED)

    def response_add(
        self, request: HttpRequest, obj: Client, post_url_continue: str | None = None
    ) -> HttpResponse:
        secret = getattr(obj, "new_secret", "")
        if not secret:
            return super().response_add(request, obj, post_url_continue)
        return self._secret_page(request, obj, secret)

    def delete_model(self, request: HttpRequest, obj: Client) -> None:
        super().delete_model(request, obj)
        connections.withdraw(client_id=obj.client_id, reason=REMOVED)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Client]) -> None:
        ids = list(queryset.values_list("client_id", flat=True))
        super().delete_queryset(request, queryset)
        for client_id in ids:
            connections.withdraw(client_id=client_id, reason=REMOVED)

    def _secret_page(self, request: HttpRequest, client: Client, secret: str) -> HttpResponse:
        # In the answer itself: a message to show on the next page would lie in a cookie meanwhile.
        context = {
            **self.admin_site.each_context(request),
            "title": "The secret, shown this once",
            "client_id": client.client_id,
            "secret": secret,
            "audience": client.audience,
            "token_endpoint": settings.ISSUER + reverse("oauth2_provider:token"),
            "list_url": reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"),
        }
        return TemplateResponse(request, "oauth2_provider/secret.html", context)


CAME: dict[str, str] = {
    Client.RegistrationSource.MANUAL: "added here",
    Client.RegistrationSource.DCR: "registered itself",
    Client.RegistrationSource.CIMD: "by its own document on the web",
}


class HowItCame(admin.SimpleListFilter):
    title = "how it came"
    parameter_name = "registration_source"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        del request, model_admin
        return [(str(source), words) for source, words in CAME.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Client]) -> QuerySet[Client]:
        del request
        source = self.value()
        return queryset.filter(registration_source=source) if source else queryset


class ClientAdmin(ProgramAdmin):
    """Hosts: programs that people sign in to and allow to act for them."""

    form = ApplicationForm
    list_display = ("host", "own_name", "came", "state", "created")
    list_filter = (HowItCame, "blocked")
    fields = (
        "client_id",
        "name",
        "redirect_uris",
        "client_type",
        "blocked",
        "came",
        "read_again",
        "created",
    )

    @admin.display(description="how it came", ordering="registration_source")
    def came(self, client: Client) -> str:
        return CAME[client.registration_source]

    @admin.display(description="its document is read again")
    def read_again(self, client: Client) -> str:
        at = client.cimd_expires_at
        return f"after {timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}" if at else "-"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Client]:
        found: QuerySet[Client] = super().get_queryset(request)
        return found.exclude(authorization_grant_type=Client.GRANT_CLIENT_CREDENTIALS)

    def get_readonly_fields(self, request: HttpRequest, obj: Client | None = None) -> tuple[str, ...]:
        del request
        fixed = ("came", "read_again", "created")
        return fixed if obj is None else ("client_type", *fixed)

    def save_model(self, request: HttpRequest, obj: Client, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        if not change:
            obj.authorization_grant_type = Client.GRANT_AUTHORIZATION_CODE
            if obj.client_type == Client.CLIENT_CONFIDENTIAL:
                obj.new_secret = services.equip(client=obj)
        super().save_model(request, obj, form, change)


# Scopes in the words of an operator; the others open nothing to who acts for no person.
OF_SERVICES = {
    "confirm:read": "Read its own questions and what became of them",
    "confirm:request": "Ask people",
    "confirm:redeem": "Use a yes, once and for exactly that action, and report what came of it",
}


class ServiceForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs alone
    name = forms.CharField(
        max_length=255,
        widget=AdminTextInputWidget,
        help_text="People read it beside each of the service's questions, such as Payroll.",
    )
    audience = forms.CharField(
        label="Its own URL (audience)",
        max_length=resources.MAX_LENGTH,
        validators=[services.check_audience],
        widget=AdminTextInputWidget,
        help_text="Where the actions happen, such as https://payments.example.org/mcp. Nothing is sent there:"
        " people read the host beside the name, and the service's tokens are for this URL alone.",
    )
    scopes = forms.MultipleChoiceField(
        label="What it may do",
        choices=[(name, f"{words} ({name})") for name, words in OF_SERVICES.items()],
        initial=list(BASE),
        widget=forms.CheckboxSelectMultiple,
        help_text="An ordinary service needs all three. It can always read.",
    )

    class Meta:
        model = Service
        fields = ("name", "audience", "blocked")
        help_texts: ClassVar = {"blocked": "It gets no tokens any more, and those that it has do not work."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["scopes"] = self.instance.service_scope.split()


@admin.register(Service)
class ServiceAdmin(ProgramAdmin):
    """Services: programs that ask for themselves, with a secret of their own."""

    form = ServiceForm
    list_display = ("its_name", "audience", "service_scope", "state", "created")
    list_filter = ("blocked",)
    readonly_fields = ("client_id", "created")

    @admin.display(description="name")
    def its_name(self, service: Service) -> str:
        return display.text(service.name)

    def get_fields(self, request: HttpRequest, obj: Service | None = None) -> tuple[str, ...]:
        # Who may only look gets no form, and so no boxes to tick.
        looks = obj is not None and not self.has_change_permission(request, obj)
        scopes = "service_scope" if looks else "scopes"
        chosen = ("name", "audience", scopes)
        return chosen if obj is None else (*chosen, "blocked", *self.readonly_fields)

    def save_model(self, request: HttpRequest, obj: Service, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        obj.service_scope = services.scope_of(form.cleaned_data["scopes"])
        if not change:
            obj.new_secret = services.equip_service(service=obj)
        super().save_model(request, obj, form, change)


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """Codes and tokens: to look at, never to write."""

    list_display: tuple[str, ...] = ("pk", "application_host", "user", "scope", "created")
    list_select_related = ("application", "user")
    exclude = ("token", "token_checksum", "code")
    view_on_site = False

    @admin.display(description="host")
    def application_host(self, row: AccessToken | Code | RefreshToken) -> str:
        return label(row.application).host

    def has_add_permission(self, request: HttpRequest) -> bool:
        del request
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        del request, obj
        return False


class UnusedAdmin(ReadOnlyAdmin):
    """Of rows that there never are: nowhere in the index, and nothing to view."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        del request, obj
        return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        del request
        return False


class RefreshTokenAdmin(ReadOnlyAdmin):
    list_display = ("pk", "application_host", "user", "grant_scope", "created", "revoked")

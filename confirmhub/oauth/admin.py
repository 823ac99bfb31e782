"""Connected hosts in Django's admin: an operator makes, blocks and looks; nobody mints tokens.

The toolkit registers these classes under the names in `defaults`; its own would let an operator
write another person's name into a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from oauth2_provider.forms import ApplicationForm

from confirmhub import display
from confirmhub.oauth import connections
from confirmhub.oauth.clients import label
from confirmhub.oauth.models import Client

if TYPE_CHECKING:
    from django.db.models import Field, Model, QuerySet
    from django.forms import TypedChoiceField
    from django.http import HttpRequest


BLOCKED = "The program was blocked by an operator."
REMOVED = "The program was removed by an operator."


class ClientAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    form = ApplicationForm
    list_display = ("host", "own_name", "registration_source", "blocked", "created")
    list_filter = ("registration_source", "blocked")
    search_fields = ("client_id", "name")
    readonly_fields = ("registration_source", "cimd_expires_at", "created")
    fields = (
        "client_id",
        "name",
        "redirect_uris",
        "client_type",
        "authorization_grant_type",
        "client_secret",
        "hash_client_secret",
        "blocked",
        *readonly_fields,
    )
    view_on_site = False
    actions = ("block",)

    @admin.display(description="host")
    def host(self, client: Client) -> str:
        shown = label(client)
        return f"{shown.host} (verified)" if shown.verified else shown.host

    @admin.display(description="calls itself")
    def own_name(self, client: Client) -> str:
        return display.text(client.name)

    @admin.action(description="Block the selected hosts; their tokens stop working")
    def block(self, request: HttpRequest, queryset: QuerySet[Client]) -> None:
        ids = list(queryset.values_list("client_id", flat=True))
        blocked = queryset.update(blocked=True)
        for client_id in ids:
            connections.withdraw(client_id=client_id, reason=BLOCKED)
        self.message_user(request, f"{blocked} blocked.")

    def save_model(self, request: HttpRequest, obj: Client, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        super().save_model(request, obj, form, change)
        if obj.blocked:
            connections.withdraw(client_id=obj.client_id, reason=BLOCKED)

    def delete_model(self, request: HttpRequest, obj: Client) -> None:
        super().delete_model(request, obj)
        connections.withdraw(client_id=obj.client_id, reason=REMOVED)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Client]) -> None:
        ids = list(queryset.values_list("client_id", flat=True))
        super().delete_queryset(request, queryset)
        for client_id in ids:
            connections.withdraw(client_id=client_id, reason=REMOVED)

    def formfield_for_choice_field(
        self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> TypedChoiceField | None:
        if db_field.name == "authorization_grant_type":  # the one that is served
            kwargs["choices"] = [(Client.GRANT_AUTHORIZATION_CODE, "Authorization code")]
            kwargs["initial"] = Client.GRANT_AUTHORIZATION_CODE
        return super().formfield_for_choice_field(db_field, request, **kwargs)


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """Codes and tokens: to look at, never to write."""

    list_display: tuple[str, ...] = ("pk", "application_host", "user", "scope", "created")
    list_select_related = ("application", "user")
    exclude = ("token", "token_checksum", "code")
    view_on_site = False

    @admin.display(description="host")
    def application_host(self, row: Model) -> str:
        return label(row.application).host  # type: ignore[attr-defined]

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

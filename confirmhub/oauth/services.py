"""Services: confidential clients that act for themselves. Operators make them, and nobody else does."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q

from confirmhub.oauth import client_secrets, connections, resources
from confirmhub.oauth.models import Client, Service
from confirmhub.oauth.scopes import BASE, LEAST, SCOPES

log = logging.getLogger(__name__)


def check_audience(audience: str) -> None:
    """Let `audience` be the resource of a service.

    Raises:
        ValidationError: It is no absolute URL of https or of this machine, or not in its one spelling.
    """
    if not resources.may_be_audience(audience):
        raise ValidationError(
            "Write the service's own URL, such as https://payments.example.org/mcp: https (or http on this"
            " machine), lower case host, no user name, no default port, no ? and no #, no / at the end."
            " It only names the service; nothing is ever sent there."
        )


def create(*, name: str, audience: str, scopes: Iterable[str] = BASE) -> tuple[Service, str]:
    """A new service, and its secret, which nothing can show again.

    `name` is for people, in the operator's words. `scopes` are the most that its tokens may hold; the
    least scope is always among them, since a token without it would be refused everywhere.

    Raises:
        ValidationError: `audience` cannot be one, or a scope is none of ours.
    """
    check_audience(audience)
    service = Service(name=name, audience=audience, service_scope=scope_of(scopes))
    secret = equip_service(service=service)
    service.save()
    return service, secret


def equip_service(*, service: Service) -> str:
    """What makes `service`, not yet saved, a service, and its secret."""
    service.client_id = f"service-{secrets.token_urlsafe(18)}"
    service.client_type = Client.CLIENT_CONFIDENTIAL
    service.authorization_grant_type = Client.GRANT_CLIENT_CREDENTIALS
    log.info("Service %s made, for %s", service.client_id, service.audience)
    return equip(client=service)


def equip(*, client: Client) -> str:
    """Give `client`, not yet saved, a secret; it is returned, and nothing can show it again."""
    secret = client_secrets.make()
    client.client_secret = client_secrets.stored(secret)
    return secret


def scope_of(scopes: Iterable[str]) -> str:
    """What is stored for a choice of scopes.

    Raises:
        ValidationError: One is none of ours.
    """
    chosen = {*scopes, *LEAST}
    if not chosen <= set(SCOPES):
        raise ValidationError("These are not scopes of confirmhub.")
    return " ".join(name for name in SCOPES if name in chosen)


def renew_secret(*, client: Client) -> str:
    """A new secret for a confidential client. The old one, and what was got with it, is good no more."""
    with transaction.atomic():
        secret = equip(client=client)
        client.save(update_fields=["client_secret", "updated"])
        connections.end_tokens(Q(application=client))
    log.info("Client %s got a new secret", client.client_id)
    return secret

"""Clients that are known by the URL of their metadata document (CIMD).

A document is fetched only while a signed-in person is about to consent, never for a token
request: a client that holds a code or a token has its row already, and an anonymous caller
cannot make us fetch anything.
"""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from confirmhub.oauth import fetcher, throttle
from confirmhub.oauth.models import Client

log = logging.getLogger(__name__)

FETCHES = throttle.Limit(what="document", count=30, within=timedelta(minutes=10))  # a person
FAILURES = throttle.Limit(what="document-failure", count=1, within=timedelta(minutes=1))  # a URL

# A fetch holds one of the few threads that serve pages, for up to five seconds.
_slots = threading.BoundedSemaphore(3)


def ensure(*, client_id: str, asked_by: str) -> None:
    """Bring the row of the client at `client_id` up to date, where it is a document's URL.

    A known client keeps its row if the fetch fails; an unknown one then stays unknown. Uses the
    network for up to five seconds, so call it outside any transaction.
    """
    if not fetcher.is_document_url(client_id):
        return
    known = Client.objects.filter(client_id=client_id).first()
    if known is not None and (
        known.registration_source != Client.RegistrationSource.CIMD
        or known.blocked
        or (known.cimd_expires_at is not None and known.cimd_expires_at > timezone.now())
    ):
        return
    if throttle.wait(FAILURES, who=client_id) or throttle.count(FETCHES, who=asked_by):
        return
    if not _slots.acquire(blocking=False):
        log.warning("No thread left to fetch client metadata")
        return
    try:
        document = fetcher.fetch(client_id)
    except fetcher.UnverifiedClientError:
        throttle.count(FAILURES, who=client_id)
        return
    finally:
        _slots.release()
    _save(client_id, document)


def _save(client_id: str, document: fetcher.Document) -> None:
    metadata = document.metadata
    fields = {
        "name": metadata.name,
        "redirect_uris": " ".join(metadata.redirect_uris),
        "client_type": Client.CLIENT_PUBLIC,
        "authorization_grant_type": Client.GRANT_AUTHORIZATION_CODE,
        "cimd_expires_at": timezone.now() + document.fresh_for,
    }
    with transaction.atomic():
        client = Client.objects.select_for_update().filter(client_id=client_id).first()
        if client is None:
            _create(client_id, fields)
            return
        # A client that an operator made under this id is never taken over by a document.
        if client.registration_source != Client.RegistrationSource.CIMD:
            return
        if (client.name, client.redirect_uris) != (fields["name"], fields["redirect_uris"]):
            log.warning("Client %s changed its name or redirect URIs", client_id)
        for field, value in fields.items():
            setattr(client, field, value)
        client.save(update_fields=[*fields, "updated"])


def _create(client_id: str, fields: dict[str, object]) -> None:
    try:
        with transaction.atomic():
            Client.objects.create(
                client_id=client_id,
                registration_source=Client.RegistrationSource.CIMD,
                **fields,
            )
    except IntegrityError:
        return  # somebody else saw it first at the same moment, and saved the same
    log.info("Client %s seen for the first time", client_id)

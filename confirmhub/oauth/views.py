"""The endpoints for programs: metadata, registration, token, revocation.

They take no cookies into account, so any origin may call them from a browser (CORS).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import OperationalError, transaction
from django.http import HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.views.base import RevokeTokenView, TokenView

from confirmhub.oauth import housekeeping, metadata, throttle
from confirmhub.oauth.models import Client
from confirmhub.oauth.scopes import OPEN_TO_ALL
from confirmhub.oauth.validator import GRANTS, SERVICE_GRANT, SERVICE_TOKENS

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

log = logging.getLogger(__name__)

# Refused token requests of one address: guessing is bounded, and a host whose many users share
# an address is not slowed as long as it does well.
REFUSALS = throttle.Limit(what="token-refused", count=120, within=timedelta(minutes=1))
REGISTRATIONS = throttle.Limit(what="register", count=30, within=timedelta(hours=1))
REGISTRATIONS_OF_ALL = throttle.Limit(what="register-all", count=1000, within=timedelta(hours=1))

SERVED = (*GRANTS, SERVICE_GRANT)

# Public clients, which register themselves, have no secret; those that an operator made do.
AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"]


def open_to_any_origin[**P](
    view: Callable[P, HttpResponseBase],
) -> Callable[P, HttpResponseBase]:
    """Let a page of any origin call this view, without cookies, and read the answer."""

    @wraps(view)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        response = view(*args, **kwargs)
        response["Access-Control-Allow-Origin"] = "*"
        response["Access-Control-Allow-Headers"] = "Authorization, Content-Type, MCP-Protocol-Version"
        return response

    return wrapped


def refused(error: str, description: str, *, status: int = 400, retry_after: int = 0) -> JsonResponse:
    """An error of RFC 6749 section 5.2. `retry_after` is in seconds; 0 leaves the header out."""
    headers = {"Cache-Control": "no-store"}
    if retry_after:
        headers["Retry-After"] = str(retry_after)
    body = {"error": error, "error_description": description}
    return JsonResponse(body, status=status, headers=headers)


class Endpoint(View):
    """A view that says in JSON, as it says everything, that it is not asked this way."""

    def http_method_not_allowed(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        allowed = super().http_method_not_allowed(request, *args, **kwargs)["Allow"]
        answer = refused("invalid_request", f"Use one of: {allowed}.", status=405)
        answer["Allow"] = allowed
        return answer


@method_decorator(open_to_any_origin, name="dispatch")
class Metadata(Endpoint):
    """RFC 8414, with exactly what is true here."""

    def get(self, request: HttpRequest) -> HttpResponse:
        del request  # the issuer never follows the Host header

        def url(name: str) -> str:
            return settings.ISSUER + reverse(f"oauth2_provider:{name}")

        document = {
            "issuer": settings.ISSUER,
            "authorization_endpoint": url("authorize"),
            "token_endpoint": url("token"),
            "registration_endpoint": url("register"),
            "revocation_endpoint": url("revoke"),
            "scopes_supported": sorted(OPEN_TO_ALL),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": list(SERVED),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": AUTH_METHODS,
            "revocation_endpoint_auth_methods_supported": AUTH_METHODS,
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
        }
        return JsonResponse(document)


@method_decorator([csrf_exempt, open_to_any_origin], name="dispatch")
class Register(Endpoint):
    """RFC 7591, for public clients with the authorization code grant and nothing else.

    No registration access token: it would be a bearer token without a person (`oauth.md` 1).
    """

    def post(self, request: HttpRequest) -> HttpResponse:
        for limit, who in (
            (REGISTRATIONS, throttle.sender(request)),
            (REGISTRATIONS_OF_ALL, "all"),
        ):
            if seconds := throttle.count(limit, who=who):
                return refused(
                    "temporarily_unavailable",
                    "Too many registrations. Try again later.",
                    status=429,
                    retry_after=seconds,
                )
        try:
            fields = metadata.parse(request.body)
            accepted = metadata.read(fields, is_document=False)
        except metadata.UnusableMetadataError as error:
            return refused("invalid_client_metadata", str(error))
        housekeeping.sweep_clients(limit=10)
        client = Client.objects.create(
            client_id=secrets.token_urlsafe(24),
            client_type=Client.CLIENT_PUBLIC,
            authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
            registration_source=Client.RegistrationSource.DCR,
            name=accepted.name,
            redirect_uris=" ".join(accepted.redirect_uris),
        )
        log.info("Client %s registered, for %s", client.client_id, client.redirect_uris)
        answer: dict[str, object] = {
            "client_id": client.client_id,
            "client_id_issued_at": int(client.created.timestamp()),
            "redirect_uris": list(accepted.redirect_uris),
            "grant_types": list(GRANTS),
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            # A ceiling for nobody: what a client asks for is decided at each consent.
            "scope": " ".join(OPEN_TO_ALL),
        }
        if accepted.name:
            answer["client_name"] = accepted.name
        return JsonResponse(answer, status=201, headers={"Cache-Control": "no-store"})


@method_decorator([csrf_exempt, open_to_any_origin], name="dispatch")
class Token(Endpoint, TokenView):
    """RFC 6749 section 3.2. One transaction, so that the rows it locks stay locked."""

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        return _counted(request, lambda: self._answer(request, *args, **kwargs))

    def _answer(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if problem := _misplaced(request):
            return problem
        # The toolkit answers device codes before its validator is asked.
        if request.POST.get("grant_type") not in SERVED:
            return refused("unsupported_grant_type", f"Supported: {', '.join(SERVED)}.")
        try:
            # A refusal is a returned response, not an exception, so that a replay's revocation
            # is committed.
            with transaction.atomic():
                response: HttpResponseBase = super().post(request, *args, **kwargs)
        except OperationalError as exc:
            return _busy(exc)
        # RFC 6749 section 5.1. The toolkit leaves both out where it refuses late.
        response["Content-Type"] = "application/json"
        response["Cache-Control"] = "no-store"
        if response.status_code == 429:
            response["Retry-After"] = str(int(SERVICE_TOKENS.within.total_seconds()))
        return response


@method_decorator([csrf_exempt, open_to_any_origin], name="dispatch")
class Revoke(Endpoint, RevokeTokenView):
    """RFC 7009."""

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        return _counted(request, lambda: self._answer(request, *args, **kwargs))

    def _answer(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if problem := _misplaced(request):
            return problem
        try:
            with transaction.atomic():
                response: HttpResponseBase = super().post(request, *args, **kwargs)
        except OperationalError as exc:
            return _busy(exc)
        return response


def _misplaced(request: HttpRequest) -> JsonResponse | None:
    if request.GET:
        return refused("invalid_request", "No parameters in the URL.")
    if not request.headers.get("Authorization", "").isascii():  # the toolkit fails on it
        return refused("invalid_request", "The Authorization header is not ASCII.")
    return None


def _busy(exc: OperationalError) -> JsonResponse:
    # lock_timeout: somebody else holds this code or token.
    log.warning("A token request waited too long for its row", exc_info=exc)
    return refused("temporarily_unavailable", "Busy. Try again.", status=503, retry_after=1)


def _counted(request: HttpRequest, answer: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """The answer, unless this sender was refused too often lately; a refusal counts."""
    who = throttle.sender(request)
    if seconds := throttle.wait(REFUSALS, who=who):
        return _slow_down(seconds)
    response = answer()
    if response.status_code in (400, 401):
        throttle.count(REFUSALS, who=who)
    return response


def _slow_down(seconds: int) -> JsonResponse:
    return refused(
        "temporarily_unavailable",
        "Too many refused requests. Try again later.",
        status=429,
        retry_after=seconds,
    )

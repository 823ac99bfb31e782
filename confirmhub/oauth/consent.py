"""The page where a person lets a program act for them. Nothing skips it.

The request stands in the URL, for the page and for the answer alike, and is checked in full both
times; the form carries the person's verdict and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.conf import settings
from django.shortcuts import render
from django.utils.csp import CSP, build_policy
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_deny
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.views.base import BaseAuthorizationView
from oauthlib.oauth2.rfc6749 import errors

from confirmhub import display
from confirmhub.oauth import clients, documents, redirects, resources, scopes
from confirmhub.oauth.models import Client, RefreshToken
from confirmhub.oauth.validator import S256_CHALLENGE

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

log = logging.getLogger(__name__)

FIELDS = {"csrfmiddlewaretoken", "verdict"}


@dataclass(frozen=True, slots=True)
class Asked:
    """An authorization request that was checked (RFC 6749 section 4.1.1)."""

    client: Client
    redirect_uri: str
    scopes: tuple[str, ...]
    credentials: dict[str, object]


@dataclass(frozen=True, slots=True)
class ScopeLine:
    words: str
    is_new: bool


@method_decorator([never_cache, xframe_options_deny], name="dispatch")
class Authorize(BaseAuthorizationView):
    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if request.user.is_authenticated:
            documents.ensure(client_id=request.GET.get("client_id", ""), asked_by=str(request.user.pk))
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response

    def handle_no_permission(self) -> HttpResponseBase:
        """Send who is not signed in to the sign-in page, and back here after it."""
        if "none" in self.request.GET.get("prompt", "").split():
            return self._guarded(partial(self._refuse_silently, error="login_required"))
        response: HttpResponseBase = super(BaseAuthorizationView, self).handle_no_permission()
        return response

    def get(self, request: HttpRequest) -> HttpResponseBase:
        if "none" in request.GET.get("prompt", "").split():
            return self._guarded(partial(self._refuse_silently, error="consent_required"))
        return self._guarded(self._show)

    def post(self, request: HttpRequest) -> HttpResponseBase:
        # oauthlib reads the body, too: a field of the request there would replace the one in
        # the URL, which is what the page showed.
        if not set(request.POST) <= FIELDS or request.POST.get("verdict") not in ("allow", "deny"):
            return self._refusal_page("The form was not complete. Please start again.")
        return self._guarded(self._settle)

    def redirect(self, redirect_to: str, application: Client | None) -> HttpResponseBase:
        """Back to the program, always saying who answers (RFC 9207), errors included."""
        response: HttpResponseBase = super().redirect(
            redirects.with_issuer(redirect_to, settings.ISSUER), application
        )
        return response

    # --- the steps ----------------------------------------------------------------------------

    def _guarded(self, step: Callable[[Asked], HttpResponseBase]) -> HttpResponseBase:
        try:
            return step(self._check())
        except FatalClientError as error:
            # RFC 6749 section 4.1.2.1: where client or redirect URI are wrong, never go there.
            log.info("Authorization request refused: %s", error.oauthlib_error.description)
            return self._refusal_page(
                "This program is not known here, or it asked to be answered at an address that"
                " is not its own. Nothing was allowed."
            )
        except OAuthToolkitError as error:
            response: HttpResponseBase = self.error_response(error, None)
            return response
        except ValueError:  # oauthlib, on a query string that is none
            return self._refusal_page("The address of this page is damaged. Nothing was allowed.")

    def _check(self) -> Asked:
        """The request in the URL, or a refusal.

        Raises:
            FatalClientError: No known client, or not its redirect URI: show it here.
            OAuthToolkitError: Anything else is wrong: tell the client.
        """
        query = self.request.GET
        wanted, credentials = self.validate_authorization_request(self.request)
        client = credentials["request"].client
        uri = str(credentials["redirect_uri"])

        def refuse(error: type[errors.OAuth2Error], description: str) -> OAuthToolkitError:
            cause = error(description=description, state=credentials["state"])
            return OAuthToolkitError(error=cause, redirect_uri=uri)

        if not redirects.is_acceptable(uri):  # a row that an operator wrote past `Client.clean`
            raise FatalClientError(error=errors.InvalidRedirectURIError())
        if query.get("response_mode", "query") != "query":
            raise refuse(errors.InvalidRequestError, "Only response_mode=query is supported.")
        if credentials.get("code_challenge_method") != "S256" or not S256_CHALLENGE.fullmatch(
            str(credentials.get("code_challenge"))
        ):
            raise refuse(errors.InvalidRequestError, "PKCE with S256 is required.")
        if not all(map(resources.is_ours, query.getlist("resource"))):
            raise refuse(_InvalidTargetError, "Unknown resource.")
        # A token without the least scope would be refused everywhere.
        granted = tuple(name for name in scopes.SCOPES if name in {*wanted, *scopes.LEAST})
        credentials["resource"] = [settings.MCP_RESOURCE]
        return Asked(client, uri, granted, credentials)

    def _show(self, asked: Asked) -> HttpResponseBase:
        label = clients.label(asked.client, redirect=asked.redirect_uri)
        held = _held_scopes(asked.client, self.request.user)
        parts = redirects.split(asked.redirect_uri)
        context = {
            "account": display.show(self.request.user.get_username()),
            "host": label.host,
            "verified": label.verified,
            "name": display.show(label.name) if label.name else None,
            "since": label.since,
            "redirect_host": parts.netloc if parts else "",
            "loopback": redirects.is_loopback((parts.hostname if parts else "") or ""),
            "scopes": [
                ScopeLine(scopes.SCOPES[name], bool(held) and name not in held) for name in asked.scopes
            ],
            "held_before": bool(held),
        }
        response = render(self.request, "oauth2_provider/authorize.html", context)
        response["Content-Security-Policy"] = _policy(asked.redirect_uri)
        return response

    def _settle(self, asked: Asked) -> HttpResponseBase:
        allow = self.request.POST["verdict"] == "allow"
        uri, _headers, _body, _status = self.create_authorization_response(
            request=self.request,
            scopes=" ".join(asked.scopes),
            credentials=dict(asked.credentials),
            allow=allow,
        )
        log.info("User %s allowed %s", self.request.user.pk, asked.client.client_id)
        return self.redirect(uri, asked.client)

    def _refuse_silently(self, asked: Asked, *, error: str) -> HttpResponseBase:
        answer = {"error": error}
        if state := asked.credentials["state"]:
            answer["state"] = str(state)
        separator = "&" if "?" in asked.redirect_uri else "?"
        return self.redirect(asked.redirect_uri + separator + urlencode(answer), asked.client)

    def _refusal_page(self, reason: str) -> HttpResponseBase:
        return render(self.request, "oauth2_provider/refused.html", {"reason": reason}, status=400)


class _InvalidTargetError(errors.OAuth2Error):  # RFC 8707 section 2
    error = "invalid_target"


def _held_scopes(client: Client, user: User) -> frozenset[str]:
    """What this person lets this client do at present."""
    grants = RefreshToken.objects.filter(application=client, user=user, revoked__isnull=True)
    return frozenset(name for scope in grants.values_list("grant_scope", flat=True) for name in scope.split())


def _policy(redirect_uri: str) -> str:
    """The site's policy, with the way back opened: browsers hold a form's redirects to it."""
    parts = redirects.split(redirect_uri)
    if parts is None:
        back = "'none'"
    elif ":" in (parts.hostname or ""):
        back = f"{parts.scheme}:"  # the policy language has no IPv6 addresses
    else:
        back = f"{parts.scheme}://{parts.netloc}"
    return build_policy({**settings.SECURE_CSP, "form-action": [CSP.SELF, back]})

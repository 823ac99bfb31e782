"""A host that signs in: it registers, gets consent, redeems and refreshes, over Django's whole stack."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client as Browser

from confirmhub.oauth import fetcher, services
from confirmhub.oauth.models import Service
from tests.oauth import sites
from tests.oauth.sites import HOSTS, Web, published

AUDIENCE = "https://payments.example/mcp"
VERIFIER = "verifier-" + "v" * 40
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


@dataclass
class Host:
    """An MCP host with its own registration, and the browser of the person who uses it."""

    user: User
    resource: str
    client_id: str = ""
    redirect_uri: str = "http://127.0.0.1:33418/callback"
    browser: Browser = field(default_factory=Browser)

    def register(self, **fields: object) -> HttpResponse:
        body = {"client_name": "Test host", "redirect_uris": [self.redirect_uri], **fields}
        answer = Browser().post("/oauth/register", json.dumps(body), content_type="application/json")
        if answer.status_code == 201:
            self.client_id = answer.json()["client_id"]
        return answer

    def url(self, **changes: Any) -> str:
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": "confirm:read confirm:request confirm:redeem",
            "state": "st-1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": self.resource,
            **changes,
        }
        kept = {key: value for key, value in query.items() if value is not None}
        return "/oauth/authorize?" + urlencode(kept, doseq=True)

    def page(self, **changes: Any) -> HttpResponse:
        return self.browser.get(self.url(**changes))

    def decide(self, verdict: str = "allow", **changes: Any) -> HttpResponse:
        return self.browser.post(self.url(**changes), {"verdict": verdict})

    def code(self, **changes: Any) -> str:
        return returned(self.decide(**changes))["code"]

    def redeem(self, code: str, **changes: Any) -> HttpResponse:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": VERIFIER,
            "resource": self.resource,
            **changes,
        }
        return self.token(**fields)

    def refresh(self, refresh_token: str, **changes: Any) -> HttpResponse:
        return self.token(grant_type="refresh_token", refresh_token=refresh_token, **changes)

    def sign_in(self, **changes: Any) -> dict[str, Any]:
        """The whole way; the token response."""
        answer = self.redeem(self.code(**changes))
        assert answer.status_code == 200, answer.content
        return answer.json()

    def token(self, **fields: Any) -> HttpResponse:
        form = {"client_id": self.client_id, **fields}
        kept = {key: value for key, value in form.items() if value is not None}
        return Browser().post(
            "/oauth/token",
            urlencode(kept, doseq=True),
            content_type="application/x-www-form-urlencoded",
        )


def returned(answer: HttpResponse) -> dict[str, str]:
    """The parameters of a redirect back to the host."""
    assert answer.status_code == 302, answer.content
    return {key: values[0] for key, values in parse_qs(urlsplit(answer["Location"]).query).items()}


@pytest.fixture
def back() -> Callable[[HttpResponse], dict[str, str]]:
    return returned


@pytest.fixture
def oauth_person(db: None) -> User:
    return User.objects.create_user("ada", password="correct horse battery")


@pytest.fixture
def new_host(oauth_person: User, settings: Any) -> Callable[[], Host]:
    """Make hosts that the same person uses, each with a registration of its own."""

    def make() -> Host:
        host = Host(user=oauth_person, resource=settings.MCP_RESOURCE)
        host.browser.force_login(oauth_person, backend="django.contrib.auth.backends.ModelBackend")
        assert host.register().status_code == 201
        return host

    return make


@pytest.fixture
def host(new_host: Callable[[], Host]) -> Host:
    return new_host()


def together(call: Callable[[], Any], *, times: int = 20) -> list[Any]:
    """What `times` calls return that start together, each on a connection of its own."""
    barrier = threading.Barrier(times)

    def one(_: int) -> Any:
        try:
            barrier.wait()
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(one, range(times)))


@pytest.fixture
def at_once() -> Callable[..., list[Any]]:
    return together


# --- documents of hosts, on an HTTPS server of our own with a CA of its own


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's TLS for `*.test`, and a client's that trusts nothing else."""
    return sites.authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def web(authority: tuple[ssl.SSLContext, ssl.SSLContext]) -> Iterator[Web]:
    with sites.open_site(*authority) as site:
        yield site


@pytest.fixture(params=sorted(HOSTS))
def real_host(request: pytest.FixtureRequest, web: Web) -> tuple[str, dict[str, Any]]:
    """One of the documents that well-known hosts publish: its client id and its fields."""
    fields = HOSTS[request.param]
    return published(web, f"/{request.param}.json", **fields), fields


@pytest.fixture
def publish(web: Web) -> Callable[..., str]:
    return partial(published, web)


@pytest.fixture
def online(web: Web, monkeypatch: pytest.MonkeyPatch) -> Web:
    """The product's own fetches find the test server."""
    monkeypatch.setattr(fetcher, "fetch", web.fetch)
    return web


@pytest.fixture
def made(db: None) -> tuple[Service, str]:
    """A service, and its secret."""
    return services.create(name="Payments", audience=AUDIENCE)

"""The application, somebody in front of a browser, and the hosts that want to act for them."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser
from pytest_django import DjangoDbBlocker, Settings

from confirmhub.oauth import fetcher
from tests import chromium
from tests.bridge.serving import served
from tests.factories import make_user
from tests.hosts.oauth import programs
from tests.hosts.oauth.person import Person
from tests.hosts.oauth.programs import Host, Program
from tests.oauth import sites
from tests.oauth.sites import Web

# Playwright's own loop runs in this thread; the ORM's calls here are still synchronous.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

# "bare": it does not let the SDK delete what it stores. "ours": the Python one in `confirmhub.oauth.client`.
MAKES = ["typescript 1", "typescript 1, bare", "typescript 2", "python", "ours"]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's TLS for `claude.test`, and a client's that trusts nothing else."""
    return sites.authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def web(authority: tuple[ssl.SSLContext, ssl.SSLContext]) -> Iterator[Web]:
    """Where hosts publish their documents, and where those on the web are answered."""
    with sites.open_site(*authority) as site:
        for path in ("/api/mcp/auth_callback", "/connector_platform_oauth_redirect"):
            site.pages[path] = lambda handler: sites.send(handler, b"Signed in.", Content_Type="text/plain")
        yield site


@pytest.fixture(scope="module")
def application(django_db_setup: None, django_db_blocker: DjangoDbBlocker, web: Web) -> Iterator[str]:
    """The public URL of a server that serves for as long as the module's tests run, and finds `web`."""
    with django_db_blocker.unblock(), served() as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetcher, "fetch", web.fetch)
        yield url


@pytest.fixture
def server(application: str, transactional_db: None) -> str:
    return application


# Not for the session: while Playwright runs, no other test of this process can run an event loop.
@pytest.fixture(scope="module")
def browser(web: Web) -> Iterator[Browser]:
    """Chromium, for which the hosts on the web are our site, and nothing else is anywhere."""
    names = [f"MAP {name} 127.0.0.1:{web.port}" for name in ("claude.ai", "chatgpt.com")]
    rules = [*names, "MAP * ~NOTFOUND", "EXCLUDE localhost", "EXCLUDE 127.0.0.1"]
    options = ("--disable-gpu", f"--host-resolver-rules={','.join(rules)}")
    with chromium.running(*options) as browser:
        yield browser


@pytest.fixture
def person(browser: Browser, server: str) -> Iterator[Person]:
    """Alice. Her browser may meet no error."""
    user = make_user("alice")
    # The site's certificate is of an authority that only the application was told to trust.
    context = browser.new_context(ignore_https_errors=True)
    somebody = Person(context, server, user)
    yield somebody
    context.close()
    assert somebody.problems == []


@pytest.fixture
def alice(person: Person) -> User:
    return person.user


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    """A folder that is open to the file tools."""
    shared = tmp_path / "shared"
    shared.mkdir()
    settings.FILE_ROOTS = [shared]
    return shared


@pytest.fixture(scope="session")
def program() -> Iterator[Callable[[str], Program]]:
    """The program that can be a host of this make."""
    running: dict[str, Program] = {}
    with ExitStack() as stack:

        def find(make: str) -> Program:
            kind = "typescript" if make.startswith("typescript") else "python"
            if kind not in running:
                running[kind] = programs.typescript() if kind == "typescript" else programs.python()
                stack.callback(running[kind].end)
            return running[kind]

        yield find


@pytest.fixture(params=MAKES)
def host(request: pytest.FixtureRequest, program: Callable[[str], Program]) -> Host:
    """A host of each make."""
    return Host(program(request.param), request.param)

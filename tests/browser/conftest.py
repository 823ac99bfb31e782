"""A real Chromium on the whole application. Every page is watched: nothing fails or goes elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page

from tests.chromium import running

# Playwright's own loop runs in this thread; the ORM's calls here are still synchronous.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"


@dataclass
class Watch:
    """What a page did that it must not."""

    home: str
    problems: list[str] = field(default_factory=list)
    allowed: set[int] = field(default_factory=set)

    def over(self, page: Page) -> None:
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("request", lambda request: self._request(request.url))
        page.on("response", lambda response: self._response(response.status, response.url))

    def _console(self, kind: str, text: str) -> None:
        # Chromium reports a refused page load here too; `_response` judges those.
        if kind in ("error", "warning") and "Failed to load resource" not in text:
            self.problems.append(f"{kind}: {text}")

    def _request(self, url: str) -> None:
        if not url.startswith(f"{self.home}/"):
            self.problems.append(f"request to {url}")

    def _response(self, status: int, url: str) -> None:
        if status >= 400 and status not in self.allowed:
            self.problems.append(f"{status} for {url}")


type OpenPage = Callable[..., Page]


# Not for the session: while Playwright runs, no other test of this process can run an event loop.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running() as browser:
        yield browser


@pytest.fixture
def server(application: str, transactional_db: None) -> str:
    return application


@pytest.fixture
def watch(server: str) -> Iterator[Watch]:
    watching = Watch(home=server)
    yield watching
    assert watching.problems == []


@pytest.fixture
def open_page(chromium: Browser, server: str, watch: Watch) -> Iterator[OpenPage]:
    """Open a page in a browser of its own, signed in as somebody or as nobody."""
    with ExitStack() as stack:

        def open_(path: str, *, as_: User | None = None, **options: Any) -> Page:
            context = stack.enter_context(_context(chromium, server, as_, options))
            page = context.new_page()
            watch.over(page)
            page.goto(f"{server}{path}")
            return page

        yield open_


@contextmanager
def _context(
    chromium: Browser, server: str, user: User | None, options: dict[str, Any]
) -> Iterator[BrowserContext]:
    context = chromium.new_context(**options)
    context.set_default_timeout(10_000)
    if user is not None:
        client = Client()
        client.force_login(user)
        name = django_settings.SESSION_COOKIE_NAME
        context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": server}])
    yield context
    context.close()

"""Who is asked whether a host may act for them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, ConsoleMessage, expect

from tests.factories import PASSWORD

PATIENCE = 20_000  # milliseconds


class Person:
    """Somebody with a browser of their own, and all that went wrong in it."""

    def __init__(self, context: BrowserContext, server: str, user: User) -> None:
        self.user = user
        self._server = server
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        self.page = context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._console)

    def allow(self, link: str, *, shown: str, of: int, new: int) -> str:
        """Let the host act that the page names as `shown`. The query string that the host is then sent.

        `of` scopes are asked for, and `new` of them are marked as new.
        """
        return self._settle(link, "Allow", shown=shown, of=of, new=new)

    def deny(self, link: str, *, shown: str, of: int, new: int) -> str:
        """Do not let it. The query string that it is sent all the same."""
        return self._settle(link, "Deny", shown=shown, of=of, new=new)

    def is_sent_back(self, link: str) -> str:
        """Follow the link of a request that is refused before anybody is asked. The query string."""
        self._open(link)
        return self._query()

    def _settle(self, link: str, verdict: str, *, shown: str, of: int, new: int) -> str:
        self._open(link)
        heading = self.page.get_by_role("heading", level=1)
        expect(heading).to_have_text(f"Let {shown} act for you?")
        scopes = self.page.get_by_role("region", name="What it may do").get_by_role("listitem")
        expect(scopes).to_have_count(of)
        expect(scopes.filter(has_text=re.compile("new$"))).to_have_count(new)
        # Right after loading, a press is taken for a slip.
        expect(self.page.locator("form.still")).to_have_count(0)
        self.page.get_by_role("button", name=verdict).click()
        return self._query()

    def _open(self, link: str) -> None:
        self.page.goto(link)
        if self.page.get_by_label("Password").is_visible():
            self.page.get_by_label("Name").fill(self.user.username)
            self.page.get_by_label("Password").fill(PASSWORD)
            self.page.get_by_role("button", name="Sign in").click()

    def _query(self) -> str:
        self.page.wait_for_url(lambda url: not url.startswith(f"{self._server}/"))
        return urlsplit(self.page.url).query

    def _console(self, line: ConsoleMessage) -> None:
        # A host's own place has no icon, and may be gone when Chromium looks for one.
        if line.type in ("error", "warning") and not line.location["url"].endswith("/favicon.ico"):
            self.problems.append(line.text)


@contextlib.contextmanager
def loopback() -> Iterator[str]:
    """Where a host on the person's own machine is answered: RFC 8252 section 7.3. Yields its origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()

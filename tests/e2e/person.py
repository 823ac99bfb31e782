"""The person in front of a browser. All is found as assistive technology finds it: by role and label."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Locator, Request, expect

from tests.e2e.product import Product

PATIENCE = 20_000  # milliseconds


# Of one that was asked, allowed, used, and then tried once more.
RECORD = ["asked", "approved", "used", "reported", "use"]


class Person:
    """Somebody with a browser of their own, and all that went wrong in it."""

    def __init__(self, browser: Browser, product: Product) -> None:
        self._product = product
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        self.page = context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda line: self._console(line.type, line.text))
        self.page.on("request", self._request)

    def allow(self, link: str) -> None:
        """Follow a host's link, sign in where asked to, and let the host act."""
        self.page.goto(link)
        if self.page.get_by_label("Password").is_visible():
            self._sign_in()
        self._heading(re.compile("^Let 127.0.0.1:.* act for you\\?$"))
        self.page.wait_for_load_state()
        expect(self.page.locator("form.still")).to_have_count(0)
        self.page.get_by_role("button", name="Allow").click()
        self.page.wait_for_url("http://127.0.0.1:*/callback?*")

    def approve(self, link: str, *, path: str, check: str) -> None:
        """Read what will be done, compare it with what the host said, and say yes."""
        self.page.goto(link)
        self._heading("Delete this file?")
        shown = self.page.get_by_role("region", name="What will be done")
        expect(shown).to_contain_text("delete_file")
        expect(shown).to_contain_text(path)
        expect(self.page.get_by_role("main")).to_contain_text(check)
        # Right after loading, a press is taken for a slip.
        expect(self.page.locator("form.still")).to_have_count(0)
        self.page.get_by_role("button", name="Approve once").click()
        # Who waited for the yes may have spent it before the page is there.
        expect(self._decision()).to_contain_text(re.compile("Approved|Used|Done"))

    def read_receipt(self, link: str) -> list[str]:
        """Look at what became of it. Returns the first word of each of the record's entries."""
        self.page.goto(link)
        expect(self._decision()).to_contain_text("Done")
        record = self.page.get_by_role("region", name="Record")
        expect(record).to_contain_text("all are in place")
        return [line.split()[0] for line in record.locator("li > span").all_inner_texts()]

    def _sign_in(self) -> None:
        self.page.get_by_label("Name").fill(self._product.administrator)
        self.page.get_by_label("Password").fill(self._product.password)
        self.page.get_by_role("button", name="Sign in").click()

    def _heading(self, text: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_role("heading", level=1)).to_have_text(text)

    def _decision(self) -> Locator:
        return self.page.get_by_role("region", name="What was decided")

    def _console(self, kind: str, text: str) -> None:
        # A host's loopback port has no icon, and Chromium reports that here.
        if kind in ("error", "warning") and "status of 404" not in text:
            self.problems.append(text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self._product.url}/", "http://127.0.0.1:")):
            self.problems.append(f"request to {request.url}")

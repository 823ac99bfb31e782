"""Who follows the demo's links: the person at this machine, or with `--auto` a browser that plays them."""

from __future__ import annotations

import os
import shutil
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from confirmhub.ops.errors import CannotStart

if TYPE_CHECKING:
    from playwright.async_api import Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
PATIENCE = 20_000  # milliseconds for each thing that a page should show


class Person(Protocol):
    """Somebody who follows links."""

    async def allow(self, link: str) -> None:
        """Sign in where that is asked, and let the host act."""

    async def decide(self, link: str) -> None:
        """Read the question, and answer it."""


class AtTheScreen:
    """The person who started the demo. Links are opened where there is a screen, and always printed."""

    async def allow(self, link: str) -> None:
        _open(link)

    async def decide(self, link: str) -> None:
        _open(link)


class Played:
    """A headless browser that signs in, allows and approves."""

    def __init__(self, page: Page, *, name: str, password: str) -> None:
        self._page, self._name, self._password = page, name, password

    async def allow(self, link: str) -> None:
        page = self._page
        await page.goto(link)
        if await page.get_by_label("Password").is_visible():
            await page.get_by_label("Name").fill(self._name)
            await page.get_by_label("Password").fill(self._password)
            await page.get_by_role("button", name="Sign in").click()
            if await page.get_by_role("alert").is_visible():
                raise CannotStart(
                    "the sign-in was refused: check CONFIRMHUB_DEMO_USER and CONFIRMHUB_DEMO_PASSWORD"
                )
        await page.get_by_role("button", name="Allow").wait_for()
        await page.wait_for_load_state()
        await page.locator("form.still").wait_for(state="detached")
        await page.get_by_role("button", name="Allow").click()
        await page.wait_for_url("http://127.0.0.1:*/callback?*")

    async def decide(self, link: str) -> None:
        page = self._page
        await page.goto(link)
        # Right after loading, a press is taken for a slip.
        await page.locator("form:not(.still)").get_by_role("button", name="Approve once").wait_for()
        await page.locator("form.still").wait_for(state="detached")
        await page.get_by_role("button", name="Approve once").click()
        await page.get_by_role("region", name="What was decided").wait_for()


@asynccontextmanager
async def played() -> AsyncIterator[Person]:
    """Start the browser of this machine and play a person in it.

    Raises:
        CannotStart: There is no browser, no driver, or nobody to sign in as.
    """
    name, password = os.environ.get("CONFIRMHUB_DEMO_USER"), os.environ.get("CONFIRMHUB_DEMO_PASSWORD")
    if not name or not password:
        raise CannotStart("--auto signs in by itself: set CONFIRMHUB_DEMO_USER and CONFIRMHUB_DEMO_PASSWORD")
    browser_path = next(filter(None, map(shutil.which, (*BROWSERS, MAC))), None)
    if browser_path is None:
        raise CannotStart(
            "--auto needs Chromium on PATH (Debian: apt-get install -y chromium; "
            "macOS: brew install --cask google-chrome)"
        )
    try:
        from playwright.async_api import Error, async_playwright  # noqa: PLC0415 - the product does without it
    except ImportError as exc:
        raise CannotStart("--auto needs the test tools: run ./hub test once, then this again") from exc
    arguments = [] if os.geteuid() else ["--no-sandbox"]  # its sandbox does not start as root
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=browser_path, args=[*arguments, "--disable-gpu", "--disable-dev-shm-usage"]
            )
            page = await browser.new_page()
            page.set_default_timeout(PATIENCE)
            yield Played(page, name=name, password=password)
            await browser.close()
        except Error as exc:
            raise CannotStart(f"the browser did not get through: {exc.message.splitlines()[0]}") from exc


def _open(link: str) -> None:
    # Without a screen, webbrowser would start a text browser over this very terminal.
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(link)

"""What a page looks like, asked of the browser."""

from __future__ import annotations

from playwright.sync_api import Page


def scrolls_sideways(page: Page) -> bool:
    """Whether something stands out of the page to the right."""
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))

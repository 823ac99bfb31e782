"""The browser of the tests of pages, for the pages of the review."""

from __future__ import annotations

from tests.browser.conftest import application, chromium, open_page, server, watch

__all__ = ["application", "chromium", "open_page", "server", "watch"]

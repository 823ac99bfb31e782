"""The Chromium of this machine, as every test starts it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"

# Each window loads these two pages for an address bar that nobody sees, for as much of a core as the page
# of the test takes.
UNSEEN = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
# What Playwright turns off; of two such options Chromium heeds the last.
OFF = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
)


def find() -> str:
    """Where it is. Without one the tests are skipped, or fail where CI runs them."""
    if path := next(filter(None, map(shutil.which, (*NAMES, MAC))), None):
        return path
    message = "no Chromium (Debian: apt-get install -y chromium; macOS: brew install --cask google-chrome)"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@contextmanager
def running(*options: str) -> Iterator[Browser]:
    """Start it."""
    path = find()
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # its sandbox does not start as root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=[f"--disable-features={','.join((*OFF, *UNSEEN))}", *sandbox, *options]
        )
        yield browser
        browser.close()

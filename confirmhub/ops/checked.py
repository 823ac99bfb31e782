"""Whether the settings can be used, asked before anything else is started with them.

Another process reads them, so that this one need not load Django. It takes a sixth of a second.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from confirmhub.ops.environment import ROOT
from confirmhub.ops.errors import CannotStart

# With this a process of ours ends when a setting is to blame. The last line it wrote says what to do.
MISCONFIGURED = os.EX_CONFIG


def check(env: Mapping[str, str]) -> None:
    """Read all settings from these variables.

    Raises:
        CannotStart: One of them is bad.
    """
    asked = subprocess.run(
        [sys.executable, "-m", "confirmhub.ops.misconfigured"],
        cwd=ROOT,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if asked.returncode:
        last = last_line(asked.stderr)
        raise CannotStart(
            last if asked.returncode == MISCONFIGURED else f"The settings cannot be read: {last}"
        )


def last_line(text: str) -> str:
    """Return the last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it says nothing")

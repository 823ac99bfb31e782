"""The file tools in a process that is killed right before a file that it holds is deleted."""

from __future__ import annotations

import os
import signal
from typing import Any

from mcp_bridge.registry import BridgeTool
from mcp_bridge.tools import files


def tools() -> list[BridgeTool]:
    def die(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    os.unlink = die
    return files.tools()

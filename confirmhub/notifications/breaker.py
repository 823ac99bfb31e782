"""Which servers failed a moment ago, so that one that hangs is not waited for by each notice in turn.

In memory, of this process: it saves time, and decides nothing.
"""

from __future__ import annotations

import datetime as dt
import threading
import time

PAUSE = dt.timedelta(seconds=10)
MOST = 10_000  # servers that are remembered


class Breaker:
    """Servers by their URL, each with the time until which it is left alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}

    def failed(self, url: str, *, pause: dt.timedelta = PAUSE) -> None:
        """Leave it alone for a while."""
        with self._lock:
            if len(self._until) >= MOST:
                self._until.clear()
            self._until[url] = time.monotonic() + pause.total_seconds()

    def is_open(self, url: str) -> bool:
        """Whether it is left alone now."""
        with self._lock:
            return self._until.get(url, 0.0) > time.monotonic()

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._until.clear()

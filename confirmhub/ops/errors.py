"""What stops a start."""

from __future__ import annotations


class CannotStart(Exception):
    """The service cannot run here. The text is one line for a person, and says what to do."""


class AlreadyRuns(CannotStart):
    """Another process holds the data. `url` is where it serves, if it is an `up`."""

    def __init__(self, text: str, *, url: str | None) -> None:
        super().__init__(text)
        self.url = url

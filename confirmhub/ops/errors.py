"""What stops a start."""

from __future__ import annotations


class CannotStart(Exception):
    """The service cannot run here. The text is one line for a person, and says what to do."""

"""One thing at one place of a value that a flag may tell of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

type Level = Literal["warn", "info", "quiet"]
LOUDNESS: tuple[Level, ...] = ("warn", "info", "quiet")


@dataclass(frozen=True, slots=True)
class Find:
    code: str
    level: Level
    at: int
    """The index of its first character in the value."""

    what: str
    """Its description: ASCII and bounded."""

    count: int = 1
    posing: tuple[int, ...] = ()
    """The indices of the characters that are not what they look like; empty where it tells of others."""

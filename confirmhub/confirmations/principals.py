"""Who asks: an OAuth client and the person it acts for, compared as a whole."""

from __future__ import annotations

from dataclasses import dataclass

MAX_PART = 255  # characters of a client id or a subject


@dataclass(frozen=True, slots=True)
class Principal:
    """An OAuth client together with the subject it acts for (RFC 9068, `client_id` and `sub`)."""

    client_id: str
    subject: str

    def __post_init__(self) -> None:
        for part in (self.client_id, self.subject):
            if not (part.isascii() and part.isprintable() and 0 < len(part) <= MAX_PART):
                raise ValueError("a principal's parts are 1 to 255 printable ASCII characters")

"""Text for places with little room: a subject line, a push message, a row of a queue.

Never for a page where a person decides: that shows all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from confirmhub.display.graphemes import divides
from confirmhub.display.render import text
from confirmhub.display.spans import CLOSE, OPEN, Span, spans, written

LEAST_LIMIT = 64
"""Room for the cut and something on both sides of it, in characters."""


def short(value: str, limit: int) -> str:
    """The text projection in at most `limit` characters.

    If that takes a cut, what it leaves out is in the middle, as the end of a name tells its type.
    In its place stand the number of characters of the value that are not shown, and 64 bits of
    the SHA-256 of the whole value, so that the texts of two values differ whatever was cut.

    Raises:
        ValueError: The limit is below `LEAST_LIMIT`.
    """
    if limit < LEAST_LIMIT:
        raise ValueError(f"The limit must be at least {LEAST_LIMIT} characters.")
    whole = text(value)
    if len(whole) <= limit:
        return whole
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    room = limit - len(_cut(len(value), digest))
    pieces = list(spans(value))
    tail, stop = _tail(value, pieces, room // 3)
    head, start = _head(value, pieces, room - len(tail))
    return head + _cut(stop - start, digest) + tail


def _cut(count: int, digest: str) -> str:
    return f"{OPEN}\u2026{count} more, sha256 {digest}{CLOSE}"


def _head(value: str, pieces: Iterable[Span], room: int) -> tuple[str, int]:
    """As much of the beginning as there is room for, and where in the value it stops."""
    shown = ""
    for piece in pieces:
        added = written(value, piece)
        if len(added) > room:
            stop = piece.start if piece.escaped else piece.start + room
            while stop > piece.start and not divides(value[stop - 1], value[stop]):
                stop -= 1
            return shown + value[piece.start : stop], stop
        shown += added
        room -= len(added)
    return shown, len(value)


def _tail(value: str, pieces: Sequence[Span], room: int) -> tuple[str, int]:
    """As much of the end as there is room for, and where in the value it starts."""
    shown = ""
    for piece in reversed(pieces):
        added = written(value, piece)
        if len(added) > room:
            start = piece.stop if piece.escaped else piece.stop - room
            while start < piece.stop and not divides(value[start - 1], value[start]):
                start += 1
            return value[start : piece.stop] + shown, start
        shown = added + shown
        room -= len(added)
    return shown, 0

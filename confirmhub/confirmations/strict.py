"""JSON that no two readers can read differently: what is ambiguous is refused, not resolved.

RFC 8259 leaves a key twice, a byte order mark and numbers out of range to each implementation
(sections 4, 6 and 8.1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class NotStrict(ValueError):
    """It is not strict JSON. The text continues a sentence: "holds a key twice"."""


def parse(
    *, raw: bytes, max_depth: int, integer: Callable[[str], int] = int, double: Callable[[str], float]
) -> Any:
    """Parse bytes, with the caller's own rule for numbers, which may raise NotStrict.

    Raises:
        NotStrict: It is not UTF-8 JSON, begins with a byte order mark, holds a key twice in one object, NaN
            or Infinity, is nested deeper than `max_depth`, or holds a number that the rule refuses.
    """
    if raw.startswith(b"\xef\xbb\xbf"):
        raise NotStrict("begins with a byte order mark; send plain UTF-8")
    if _depth(raw) > max_depth:
        raise NotStrict(f"is nested deeper than {max_depth} levels")
    try:
        return json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_int=integer,
            parse_float=double,
        )
    except UnicodeDecodeError as exc:
        raise NotStrict("is not valid UTF-8") from exc
    except json.JSONDecodeError as exc:
        raise NotStrict(f"is not JSON: {exc.msg} at character {exc.pos}") from exc


def _depth(raw: bytes) -> int:
    """How deep the brackets nest, outside of strings. On malformed text the parser has the last word."""
    depth = deepest = 0
    for byte in _STRING.sub(b"", raw):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrict("holds the same key twice in one object")
    return found


def _refuse_constant(name: str) -> Any:
    raise NotStrict(f"holds {name}, which is not JSON")

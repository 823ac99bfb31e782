"""JSON that no two readers can read differently: what is ambiguous is refused, not resolved.

RFC 8259 leaves a key twice, a byte order mark and numbers out of range to each implementation
(sections 4, 6 and 8.1).
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_INTEGER = 2**53 - 1  # RFC 8259 section 6: beyond it, implementations disagree on the value
MAX_EXPONENT = 300

# A string, or one that never ends. Possessive: what it took it does not try again, so it stays linear.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z|\\\Z)', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[{]}")


class NotStrict(ValueError):
    """It is not strict JSON. The text continues a sentence: "holds a key twice"."""


def parse(*, raw: bytes, max_depth: int) -> Any:
    """Parse bytes. Linear in time.

    Raises:
        NotStrict: It is not UTF-8 JSON, begins with a byte order mark, holds a key twice in one object, NaN
            or Infinity, an integer beyond 2**53-1, a number that a double does not carry exactly, a negative
            zero, or is nested deeper than `max_depth`.
    """
    if raw.startswith(b"\xef\xbb\xbf"):
        raise NotStrict("begins with a byte order mark; send plain UTF-8")
    # Few have more brackets than that in all, in strings and outside of them.
    if raw.count(b"[") + raw.count(b"{") > max_depth and _depth(raw) > max_depth:
        raise NotStrict(f"is nested deeper than {max_depth} levels")
    try:
        return _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as exc:
        raise NotStrict("is not valid UTF-8") from exc
    except json.JSONDecodeError as exc:
        raise NotStrict(f"is not JSON: {exc.msg} at character {exc.pos}") from exc


def _depth(raw: bytes) -> int:
    """How deep the brackets nest, outside of strings. On malformed text the parser has the last word."""
    depth = deepest = 0
    for byte in _STRING.sub(b"", raw).translate(None, _NO_BRACKETS):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrict("holds the same key twice in one object")
    return found


def _refuse_constant(name: str) -> Any:
    raise NotStrict(f"holds {name}, which is not JSON")


def integer(text: str) -> int:
    if text == "-0":
        raise NotStrict("holds a negative zero; send 0")
    if len(text) > 17 or abs(int(text)) > MAX_INTEGER:
        raise NotStrict("holds an integer beyond 2**53-1; send it as a string")
    return int(text)


def double(text: str) -> float:
    value = float(text)
    digits = text.lower().lstrip("-").partition("e")[0].replace(".", "").strip("0")
    if not -MAX_EXPONENT <= _exponent(text) <= MAX_EXPONENT or (digits and not value):
        raise NotStrict("holds a number out of range; send it as a string")
    if not digits and text.startswith("-"):
        raise NotStrict("holds a negative zero; send 0.0")
    # Two spellings of one double are one value; a spelling that no double has is refused.
    if _decimal_digits(repr(value)) != digits:
        raise NotStrict("holds a number that a double does not carry exactly; send it as a string")
    return value


# Made once: `json.loads` would make another for each text.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=integer, parse_float=double
)


def _exponent(text: str) -> int:
    exponent = text.lower().partition("e")[2] or "0"
    return int(exponent) if len(exponent) <= 6 else MAX_EXPONENT + 1


def _decimal_digits(text: str) -> str:
    return text.lower().lstrip("-").partition("e")[0].replace(".", "").strip("0")

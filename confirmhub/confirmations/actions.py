"""What a confirmation is for: one exact action, its canonical form, and the digest that stands for it.

The canonical form is type-preserving JSON in ASCII without white space, keys sorted by code point. It
is injective on what is accepted: two different arguments never share one, `1` and `1.0` included. It
is what is stored, digested, shown and executed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from urllib.parse import urlsplit

from confirmhub.confirmations import strict
from confirmhub.confirmations.errors import InvalidAction
from confirmhub.confirmations.strict import NotStrict

type Json = bool | int | float | str | list[Json] | dict[str, Json] | None

MAX_BYTES = 32 * 1024  # of the arguments as compact UTF-8
MAX_DEPTH = 64
MAX_BODY_DEPTH = MAX_DEPTH + 6  # of a body that the arguments stand in

# Keep these digests apart from any other SHA-256, and from those of another version of the rule.
ACTION_DOMAIN = b"confirmhub/action/v1"
ARGUMENTS_DOMAIN = b"confirmhub/arguments/v1"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,99}")
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parse_arguments(*, raw: bytes) -> dict[str, Json]:
    """Parse the arguments of an action as they came, strictly.

    Raises:
        InvalidAction: They are not a JSON object, or hold what two readers could read differently: bytes
            that are not UTF-8, a byte order mark, a key twice, NaN or Infinity, a number that a double
            does not carry exactly, a negative zero, more than 64 levels, or more than 32 KiB.
    """
    if len(raw) > MAX_BYTES:
        raise InvalidAction(f"The arguments take {len(raw)} bytes; at most {MAX_BYTES} can be shown whole.")
    try:
        value = strict.parse(raw=raw, max_depth=MAX_DEPTH)
    except NotStrict as exc:
        raise InvalidAction(f"The arguments' JSON {exc}.") from exc
    if not isinstance(value, dict):
        raise InvalidAction("The arguments must be a JSON object.")
    canonical(arguments=value)
    return value


def canonical(*, arguments: Mapping[str, Json]) -> str:
    """The one ASCII text that stands for these arguments.

    Raises:
        InvalidAction: As for `parse_arguments`.
    """
    try:
        _check(arguments, depth=1)
    except NotStrict as exc:
        raise InvalidAction(f"The arguments' JSON {exc}.") from exc
    text = _CANONICAL.encode(arguments)
    # In ASCII no text is shorter than in UTF-8, which is what counts.
    if len(text) > MAX_BYTES and len(_PLAIN.encode(arguments).encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise InvalidAction(f"The arguments take more than {MAX_BYTES} bytes; they could not be shown.")
    return text


def digest_arguments(raw: bytes) -> str:
    """SHA-256 of arguments as they came, as 64 lowercase hex digits.

    Raises:
        InvalidAction: As for `parse_arguments`. It is a ValueError.
    """
    text = canonical(arguments=parse_arguments(raw=raw)).encode("ascii")
    return hashlib.sha256(framed(ARGUMENTS_DOMAIN, text)).hexdigest()


def framed(*parts: bytes) -> bytes:
    """Join parts so that no two lists of parts give the same bytes: each with its length before it."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


@dataclass(frozen=True)
class Action:
    """A call that somebody wants to make, and nothing about who or when (RFC 9396, one element).

    Raises:
        InvalidAction: The audience is no URL, the name has other characters than letters, digits and
            `_ . : / -`, or the arguments are not acceptable.
    """

    audience: str
    """The RFC 8707 resource, as a URL, where the call will be made and that may redeem."""

    name: str
    arguments: Mapping[str, Json]
    tool_digest: bytes = b""
    """SHA-256 of the tool's definition where the requester has one: a changed tool is another action."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidAction(
                "An action's name is a letter and up to 99 letters, digits and _ . : / - after it."
            )
        if not _is_resource(self.audience):
            raise InvalidAction("The audience must be an absolute http or https URL without a fragment.")
        if len(self.tool_digest) not in (0, 32):
            raise InvalidAction("A tool's digest is a SHA-256.")
        self.canonical  # noqa: B018 - refuses what cannot be canonical

    @cached_property
    def canonical(self) -> str:
        """The arguments' canonical text."""
        return canonical(arguments=self.arguments)

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256, 32 bytes, that stands for this action."""
        parts = (self.audience.encode("ascii"), self.name.encode("ascii"), self.tool_digest)
        return hashlib.sha256(framed(ACTION_DOMAIN, *parts, self.canonical.encode("ascii"))).digest()


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool saw of the target when it asked: facts to show, and a fingerprint to compare before acting.

    Raises:
        InvalidAction: The fingerprint is not printable ASCII of at most 128 characters, or there are more
            than 32 facts.
    """

    facts: tuple[tuple[str, str], ...]
    """Pairs of a label, ours, and a value, untrusted."""

    fingerprint: str

    def __post_init__(self) -> None:
        if not (
            self.fingerprint.isascii() and self.fingerprint.isprintable() and len(self.fingerprint) <= 128
        ):
            raise InvalidAction("A fingerprint is at most 128 printable ASCII characters.")
        if len(self.facts) > 32:
            raise InvalidAction("At most 32 facts about a target can be shown.")


@lru_cache(maxsize=256)  # of few audiences thousands of actions are made
def _is_resource(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    plain = value.isascii() and value.isprintable() and len(value) <= 500 and " " not in value
    return plain and parts.scheme in ("http", "https") and bool(parts.netloc) and "#" not in value


def _check(value: object, *, depth: int) -> None:
    """Hold a value that did not come through `parse_arguments` to the same rule."""
    match value:
        case int() if abs(value) > strict.MAX_INTEGER:
            strict.integer(str(value))  # says so
        case None | str() | int():
            return
        case float() if not math.isfinite(value):
            raise NotStrict(f"holds {value}, which is not JSON")
        case float():
            strict.double(repr(value))
        case dict() | list() | Mapping() if depth > MAX_DEPTH:
            raise NotStrict(f"is nested deeper than {MAX_DEPTH} levels")
        case dict() | Mapping():  # a dict is one, which takes longer to find out
            for key, item in value.items():
                _check_key(key)
                _check(item, depth=depth + 1)
        case list():
            for item in value:
                _check(item, depth=depth + 1)
        case _:
            raise NotStrict(f"holds a {type(value).__name__}, which is not JSON")


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise NotStrict("holds a key that is not text")
    if not key.isascii() and any("\ud800" <= char <= "\udfff" for char in key):
        raise NotStrict("holds a key with half of a surrogate pair")

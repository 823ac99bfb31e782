"""How bodies are read: as strictly as everything that a person decides on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from confirmhub.confirmations import strict
from confirmhub.confirmations.actions import MAX_BODY_DEPTH


class StrictJSONParser(BaseParser):
    """JSON that no two readers can read differently."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,  # noqa: ARG002 - the framework's signature
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002 - the same
    ) -> dict[str, Any]:
        """Read the whole body, which was bounded before Django saw it.

        Raises:
            ParseError: It is not a JSON object, or ambiguous.
        """
        return parse(stream.read())


def parse(raw: bytes) -> dict[str, Any]:
    """A body as a JSON object.

    Raises:
        ParseError: It is not one, or ambiguous.
    """
    try:
        value = strict.parse(raw=raw, max_depth=MAX_BODY_DEPTH)
    except strict.NotStrict as exc:
        raise ParseError(f"The body {exc}.") from exc
    if not isinstance(value, dict):
        raise ParseError("The body must be a JSON object.")
    return value

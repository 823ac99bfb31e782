"""How answers are written."""

from __future__ import annotations

from collections.abc import Iterable

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder


class AsciiJSONRenderer(JSONRenderer):
    """JSON in ASCII: a file name may hold half of a surrogate pair, which UTF-8 cannot carry."""

    ensure_ascii = True
    charset = None


class AnyAccept(DefaultContentNegotiation):
    """Answers in JSON, whatever the Accept header says (RFC 9110 section 12.5.1 allows it).

    A caller that names the type of a receipt, and not the one of a refusal, needs to read the refusal too.
    """

    def select_renderer(
        self,
        request: Request,  # noqa: ARG002 - the framework's signature
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,  # noqa: ARG002 - the same
    ) -> tuple[BaseRenderer, str]:
        ours = next(iter(renderers))
        return ours, ours.media_type


def written(body: object) -> bytes:
    """The same JSON, for what Django does not serve."""
    return _ENCODER.encode(body).encode("ascii")


_ENCODER = JSONEncoder(separators=(",", ":"))

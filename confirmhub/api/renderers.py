"""How answers are written."""

from __future__ import annotations

from rest_framework.renderers import JSONRenderer


class AsciiJSONRenderer(JSONRenderer):
    """JSON in ASCII: a file name may hold half of a surrogate pair, which UTF-8 cannot carry."""

    ensure_ascii = True
    charset = None

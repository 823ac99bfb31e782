"""The OpenAPI document, made from the code that serves."""

from __future__ import annotations

import json
from functools import cache
from threading import Lock
from typing import Any

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings

from confirmhub import __version__
from confirmhub.api import requests
from confirmhub.api.renderers import written

_DESCRIPTION = """\
Ask a person for a confirmation of one exact action, wait for the answer, spend the yes once, and report \
what came of it. Deciding is not here: people do that in their browser.

Every refusal is a problem (RFC 9457); its type is for programs. Any route refuses another host name than \
the server's own (urn:confirmhub:wrong_host), too many headers (urn:confirmhub:headers_too_large), and \
another method than it has (urn:confirmhub:method_not_allowed); any other path is \
urn:confirmhub:no_such_path. A stop of the server cuts off with \
urn:confirmhub:cut_off.
"""
_SETTINGS = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "confirmhub",
    "DESCRIPTION": _DESCRIPTION,
    "VERSION": __version__,
    "LICENSE": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    "SCHEMA_PATH_PREFIX": "/api/v[0-9]+",
    "SORT_OPERATIONS": False,
    "ENFORCE_NON_BLANK_FIELDS": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_SUFFIX": "",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "confirmhub.api.document.close",
    ],
}
_one_at_a_time = Lock()


def document() -> dict[str, Any]:
    """The document, as JSON can carry it. Its server is the public URL."""
    return _made(settings.PUBLIC_URL)


@cache
def _made(url: str) -> dict[str, Any]:
    # The library's settings are the process's own while it works.
    with _one_at_a_time, patched_settings(_SETTINGS | {"SERVERS": [{"url": url}]}):
        generator: Any = SchemaGenerator
        schema = generator(urlconf="confirmhub.api.described").get_schema(request=None, public=True)
    made: dict[str, Any] = json.loads(written(schema))
    return made


def close(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say of what is taken that a field which it does not know is refused. A hook of the library."""
    for kind in requests.Taken.__subclasses__():
        if kind.__name__ in result["components"]["schemas"]:
            result["components"]["schemas"][kind.__name__]["additionalProperties"] = False
    return result

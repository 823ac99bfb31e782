"""What a client says about itself, by document or by registration, read strictly. Pure.

It is a wish list (RFC 7591 section 2): the hosts publish grants and methods that we lack beside
those we have, and get what we have. What is missing or malformed is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from confirmhub.oauth.redirects import is_acceptable

MAX_NAME = 200  # characters
MAX_OFFERED = 50  # redirect URIs in one document
MAX_KEPT = 10  # of them, the first that we accept


class UnusableMetadataError(Exception):
    """The metadata cannot make a client. The text is ours and fit for an answer."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """A public client with the authorization code grant: the only kind that registers itself."""

    name: str
    """Its own words: untrusted."""

    redirect_uris: tuple[str, ...]


def parse(raw: bytes) -> dict[str, object]:
    """A JSON object, with no key twice.

    Raises:
        UnusableMetadataError: It is anything else.
    """
    try:
        value = json.loads(raw, object_pairs_hook=_no_twins, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UnusableMetadataError("The metadata must be one JSON object.") from error
    if not isinstance(value, dict):
        raise UnusableMetadataError("The metadata must be one JSON object.")
    return cast("dict[str, object]", value)


def read(fields: Mapping[str, object], *, is_document: bool) -> Metadata:
    """What of `fields` we can serve.

    `is_document`: the fields come from a client id metadata document, which must name the
    client and must not hold a secret.

    Raises:
        UnusableMetadataError: There is nothing that we can serve.
    """
    if "authorization_code" not in _words(fields, "grant_types", ["authorization_code"]):
        raise UnusableMetadataError("grant_types must include authorization_code.")
    if "code" not in _words(fields, "response_types", ["code"]):
        raise UnusableMetadataError("response_types must include code.")
    if is_document:
        if "client_secret" in fields or "client_secret_expires_at" in fields:
            raise UnusableMetadataError("A metadata document must not hold a client secret.")
        offered = _words(fields, "token_endpoint_auth_methods_supported", [])
        if fields.get("token_endpoint_auth_method", "none") != "none" and "none" not in offered:
            raise UnusableMetadataError("token_endpoint_auth_method must be none.")
    return Metadata(name=_name(fields, required=is_document), redirect_uris=_redirects(fields))


def _name(fields: Mapping[str, object], *, required: bool) -> str:
    name = fields.get("client_name", "")
    if not isinstance(name, str) or len(name) > MAX_NAME:
        raise UnusableMetadataError(f"client_name must be text of up to {MAX_NAME} characters.")
    # Anything that can be stored is kept as it is; `display` makes it fit to be read.
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in name):
        raise UnusableMetadataError("client_name must be valid Unicode text.")
    if required and not name.strip():
        raise UnusableMetadataError("client_name is required.")
    return name


def _redirects(fields: Mapping[str, object]) -> tuple[str, ...]:
    offered = _words(fields, "redirect_uris", [])
    if len(offered) > MAX_OFFERED:
        raise UnusableMetadataError(f"redirect_uris must be at most {MAX_OFFERED}.")
    kept = tuple(dict.fromkeys(filter(is_acceptable, offered)))[:MAX_KEPT]
    if not kept:
        raise UnusableMetadataError(
            "redirect_uris must hold an https URI, or an http URI on a loopback host."
        )
    return kept


def _words(fields: Mapping[str, object], key: str, default: list[str]) -> list[str]:
    value = fields.get(key, default)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UnusableMetadataError(f"{key} must be a list of strings.")
    return cast("list[str]", value)


def _no_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key twice")
    return fields


def _no_constant(name: str) -> object:
    raise ValueError(name)

"""Verify signed receipts offline: needs the extra `receipts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt

TYPE = "confirmhub-receipt+jwt"


class NotVerified(Exception):
    """It is no receipt, none of the keys signed it, or it was changed since."""


def verify(
    receipt: str, jwks: Mapping[str, Any], *, issuer: str | None = None, audience: str | None = None
) -> dict[str, Any]:
    """The claims of a receipt that one of these keys has signed.

    `jwks` is what the hub's /api/v1/receipt-keys returns: fetch it once over HTTPS and keep it. Where
    `issuer` or `audience` is given, the receipt must be of that hub, or for that service.

    Raises:
        NotVerified: It must not be believed.
    """
    try:
        header = jwt.get_unverified_header(receipt)
        keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(dict(jwks)).keys}
        if header.get("typ") != TYPE or header.get("kid") not in keys:
            raise NotVerified("It is no receipt, or none of these keys signed it.")
        found: dict[str, Any] = jwt.decode(
            receipt,
            keys[header["kid"]],
            algorithms=["EdDSA"],
            issuer=issuer,
            audience=audience,
            options={"verify_aud": audience is not None, "require": ["iss", "aud", "jti"]},
        )
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as exc:
        raise NotVerified("It is no receipt, or was changed.") from exc
    return found

"""Signed receipts: what anybody can check afterwards, offline, that a person approved exactly this.

A JWS in compact form (RFC 7515) over the claims of one spent confirmation, signed by Ed25519 (RFC 8037). The
key pairs are derived from the lines of RECEIPT_KEYS, so that there is one secret a key, of any form.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from jwt.utils import base64url_encode

from confirmhub.confirmations.errors import NotRedeemed
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status

TYPE = "confirmhub-receipt+jwt"
MAX_LENGTH = 256 * 1024  # characters; the claims hold at most 32 KiB of arguments, escaped
_INFO = b"confirmhub/receipt/v1/ed25519"


class NotVerified(Exception):
    """The text is no receipt of ours: another form, another key, or changed. The text says which."""


def sign(*, confirmation: Confirmation) -> str:
    """The signed receipt of a spent confirmation, as a JWS in compact form.

    Raises:
        NotRedeemed: It was not redeemed.
    """
    if confirmation.status != Status.REDEEMED:
        raise NotRedeemed
    kid, private = _pairs()[0]
    return jwt.encode(claims(confirmation), private, algorithm="EdDSA", headers={"kid": kid, "typ": TYPE})


def claims(confirmation: Confirmation) -> dict[str, Any]:
    """What a receipt says. Times are UTC in ISO 8601; digests are lowercase hex; `arguments` is canonical."""
    outcome = getattr(confirmation, "outcome", None)
    decisions = confirmation.decisions.order_by("decided_at", "id")
    return {
        "iss": settings.ISSUER,
        "aud": confirmation.audience,
        "sub": confirmation.requester_subject,
        "client_id": confirmation.requester_client_id,
        "jti": str(confirmation.id),
        "action": confirmation.action,
        "arguments": confirmation.arguments,
        "digest": _hex(confirmation.digest),
        "tool_digest": _hex(confirmation.tool_digest),
        "view_digest": _hex(confirmation.view_digest),
        "policy": confirmation.policy,
        "mode": confirmation.mode,
        "approvals_needed": confirmation.approvals_needed,
        "decisions": [
            {
                "sub": str(decision.approver_id),
                "verdict": decision.verdict,
                "assurance": decision.assurance,
                "decided_at": _time(decision.decided_at),
                "view_digest": _hex(decision.view_digest),
                "renderer": decision.renderer,
            }
            for decision in decisions
        ],
        "requested_at": _time(confirmation.requested_at),
        "settled_at": _time(confirmation.settled_at),
        "redeemed_at": _time(confirmation.redeemed_at),
        "redemption_key": confirmation.redemption_key,
        "outcome": outcome and {"result": outcome.result, "reported_at": _time(outcome.reported_at)},
        "events": {"count": confirmation.event_count, "head": _hex(confirmation.event_head)},
    }


def keys() -> dict[str, list[dict[str, str]]]:
    """The public keys as a JWK set (RFC 7517 section 5, RFC 8037 section 2), the one that signs first."""
    return {"keys": [_jwk(kid, private.public_key()) for kid, private in _pairs()]}


def verify(*, receipt: str, jwks: dict[str, Any]) -> dict[str, Any]:
    """The claims of a receipt that one of these keys has signed.

    Raises:
        NotVerified: It is not a receipt, no key of the set signed it, or it was changed since.
    """
    if len(receipt) > MAX_LENGTH:
        raise NotVerified("it is too long for a receipt")
    try:
        header = jwt.get_unverified_header(receipt)
        if header.get("typ") != TYPE:
            raise NotVerified("it is signed, but is no receipt")
        key = next(key for key in jwt.PyJWKSet.from_dict(jwks).keys if key.key_id == header.get("kid"))
        found: dict[str, Any] = jwt.decode(
            receipt,
            key,
            algorithms=["EdDSA"],
            # Who checks compares audience and issuer with their own; a receipt has no end.
            options={"verify_aud": False, "verify_iss": False, "require": ["iss", "aud", "jti"]},
        )
    except StopIteration as exc:
        raise NotVerified("none of these keys signed it") from exc
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as exc:
        raise NotVerified("it is no receipt, or was changed") from exc
    return found


def _pairs() -> list[tuple[str, Ed25519PrivateKey]]:
    return [_pair(secret) for secret in settings.RECEIPT_KEYS]


@cache
def _pair(secret: str) -> tuple[str, Ed25519PrivateKey]:
    seed = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=_INFO).derive(secret.encode())
    private = Ed25519PrivateKey.from_private_bytes(seed)
    return hashlib.sha256(_raw(private.public_key())).hexdigest()[:16], private


def _raw(public: Ed25519PublicKey) -> bytes:
    return public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def _jwk(kid: str, public: Ed25519PublicKey) -> dict[str, str]:
    return {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": base64url_encode(_raw(public)).decode("ascii"),
        "use": "sig",
        "alg": "EdDSA",
        "kid": kid,
    }


def _hex(digest: bytes | memoryview) -> str:
    return bytes(digest).hex()


def _time(at: dt.datetime | None) -> str | None:
    return at.astimezone(dt.UTC).isoformat().replace("+00:00", "Z") if at else None

"""Signed receipts: what they say, that they can be checked without us, and that nothing else passes."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.contrib.auth.models import User
from pytest_django import Settings

from confirmhub.confirmations import errors, ledger, proof, queries
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result
from tests.factories import TRANSFER, make_approved, redeem


@pytest.fixture
def signed(agent: Principal, alice: User) -> str:
    approved = make_approved(agent, alice)
    ledger.report_outcome(receipt=redeem(approved, agent, key="k"), result=Result.SUCCEEDED)
    return proof.sign(confirmation=queries.get_for_requester(confirmation_id=approved.id, requester=agent))


def test_a_receipt_says_who_approved_exactly_what(signed: str, agent: Principal, alice: User) -> None:
    found = proof.verify(receipt=signed, jwks=json.loads(json.dumps(proof.keys())))

    assert (found["aud"], found["action"]) == (TRANSFER.audience, TRANSFER.name)
    assert (found["arguments"], found["digest"]) == (TRANSFER.canonical, TRANSFER.digest.hex())
    assert (found["client_id"], found["sub"]) == (agent.client_id, agent.subject)
    [decision] = found["decisions"]
    assert (decision["sub"], decision["verdict"], decision["assurance"]) == (str(alice.pk), "approve", "page")
    assert decision["view_digest"] == found["view_digest"]
    assert (found["redemption_key"], found["outcome"]["result"]) == ("k", "succeeded")
    assert (found["events"]["count"], len(found["events"]["head"])) == (4, 64)


def test_there_is_no_receipt_of_a_yes_that_was_not_spent(agent: Principal, alice: User) -> None:
    with pytest.raises(errors.NotRedeemed):
        proof.sign(confirmation=make_approved(agent, alice))


def test_a_receipt_of_an_old_key_is_verified_for_as_long_as_the_key_is_published(
    signed: str, settings: Settings
) -> None:
    settings.RECEIPT_KEYS = ["n" * 32, *settings.RECEIPT_KEYS]
    assert proof.verify(receipt=signed, jwks=proof.keys())["jti"]

    settings.RECEIPT_KEYS = settings.RECEIPT_KEYS[:1]
    with pytest.raises(proof.NotVerified, match="none of these keys"):
        proof.verify(receipt=signed, jwks=proof.keys())


def test_one_changed_character_is_found(signed: str) -> None:
    for place in range(0, len(signed), 7):
        other = "A" if signed[place] != "A" else "B"
        with pytest.raises(proof.NotVerified):
            proof.verify(receipt=signed[:place] + other + signed[place + 1 :], jwks=proof.keys())


def header(**more: str) -> dict[str, Any]:
    return {"kid": proof.keys()["keys"][0]["kid"], "typ": proof.TYPE} | more


def test_what_others_signed_is_refused() -> None:
    claims = {"iss": "x", "aud": "x", "jti": "x"}
    stranger = Ed25519PrivateKey.generate()
    forged = [
        jwt.encode(claims, stranger, algorithm="EdDSA", headers=header()),
        jwt.encode(claims, "s" * 32, algorithm="HS256", headers=header()),
        jwt.encode(claims, proof.keys()["keys"][0]["x"], algorithm="HS256", headers=header()),
        jwt.encode(claims, "", algorithm="none", headers=header()),
        jwt.encode(claims, proof._pairs()[0][1], algorithm="EdDSA", headers=header(typ="JWT")),
        jwt.encode({"iss": "x"}, proof._pairs()[0][1], algorithm="EdDSA", headers=header()),
        "",
        "a.b.c",
        "x" * (proof.MAX_LENGTH + 1),
    ]
    for text in forged:
        with pytest.raises(proof.NotVerified):
            proof.verify(receipt=text, jwks=proof.keys())


@pytest.mark.parametrize("jwks", [{}, {"keys": []}, {"keys": [{"kty": "oct", "k": "AAAA"}]}, {"keys": "x"}])
def test_a_set_without_a_usable_key_verifies_nothing(signed: str, jwks: dict[str, Any]) -> None:
    with pytest.raises(proof.NotVerified):
        proof.verify(receipt=signed, jwks=jwks)

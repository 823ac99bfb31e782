"""`manage.py verify_receipt`: what is genuine is told, rendered; what is not is refused, with a reason."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django import Settings

from confirmhub.confirmations import proof
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from tests.factories import AUDIENCE, make_approved, redeem

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = Action(AUDIENCE, "pay", {"to": "rent\u202e\n\x1b[31m"})


@pytest.fixture
def receipt(agent: Principal, alice: User, tmp_path: Path) -> Path:
    spent = make_approved(agent, alice, action=HOSTILE)
    redeem(spent, agent, action=HOSTILE, key="key-1")
    file = tmp_path / "receipt.jws"
    file.write_text(proof.sign(confirmation=Confirmation.objects.get(id=spent.id)) + "\n")
    return file


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps(proof.keys()))
    return file


def said(*arguments: object) -> str:
    out = io.StringIO()
    call_command("verify_receipt", *map(str, arguments), stdout=out)
    return out.getvalue()


def test_a_receipt_is_verified_and_told_line_by_line(receipt: Path, keys: Path, alice: User) -> None:
    told = said(receipt, "--keys", keys)

    assert told.startswith("The receipt is genuine. It says, with people by the numbers of their accounts:\n")
    assert "  action: pay\n" in told
    assert f"  decisions.1.sub: {alice.pk}\n" in told
    assert "  redemption_key: key-1\n" in told
    assert "  outcome: null\n" in told
    assert "tool_digest" not in told  # which is empty here
    assert "⟨empty⟩" not in told
    assert "\x1b" not in told
    assert "\u202e" not in told


@pytest.mark.parametrize("at", [0, 60, -10])
def test_a_receipt_that_was_changed_is_refused(receipt: Path, keys: Path, at: int) -> None:
    text = receipt.read_text().strip()
    at %= len(text)
    receipt.write_text(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :])

    with pytest.raises(CommandError, match=r"^Not verified: "):
        said(receipt, "--keys", keys)


def test_the_keys_of_another_server_verify_nothing(receipt: Path, keys: Path, settings: Settings) -> None:
    settings.RECEIPT_KEYS = ["another-" * 8]
    keys.write_text(json.dumps(proof.keys()))

    with pytest.raises(CommandError, match="none of these keys signed it"):
        said(receipt, "--keys", keys)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", "\x00", '{"keys": 1}', '{"keys": [{}]}'])
def test_what_is_no_key_set_is_refused(receipt: Path, keys: Path, text: str) -> None:
    keys.write_text(text)

    with pytest.raises(CommandError):
        said(receipt, "--keys", keys)


@pytest.mark.parametrize("text", ["", "a.b.c", "é" * 10, "A" * 300_000])
def test_what_is_no_receipt_is_refused(receipt: Path, keys: Path, text: str) -> None:
    receipt.write_text(text)

    with pytest.raises(CommandError, match=r"Not verified|longer than"):
        said(receipt, "--keys", keys)


def test_a_file_that_is_not_there_is_named(receipt: Path, keys: Path) -> None:
    keys.unlink()

    with pytest.raises(CommandError, match=r"keys\.json cannot be read"):
        said(receipt, "--keys", keys)


def test_keys_come_by_https_alone(receipt: Path) -> None:
    with pytest.raises(CommandError, match="Give an https URL"):
        said(receipt, "--url", "http://localhost:8000/api/v1/receipt-keys")
    with pytest.raises(CommandError, match="could not be fetched"):
        said(receipt, "--url", "https://localhost:1/keys")

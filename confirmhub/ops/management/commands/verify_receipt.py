"""Check a receipt offline, and print what it says."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
from django.core.management.base import BaseCommand, CommandError, CommandParser

from confirmhub import display
from confirmhub.confirmations import proof, strict

MAX_KEYS = 64 * 1024  # bytes of a key set


class Command(BaseCommand):
    help = "Check a signed receipt with public keys; exits with 1 where it is none, or was changed."
    requires_system_checks = ()  # no database is needed

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("receipt", type=Path, help="the file that holds the receipt")
        keys = parser.add_mutually_exclusive_group(required=True)
        keys.add_argument("--keys", type=Path, help="a file with what /api/v1/receipt-keys answers")
        keys.add_argument("--url", help="where to fetch the key set once, by https")

    def handle(self, *_: Any, receipt: Path, keys: Path | None, url: str | None, **__: Any) -> None:
        text = _read(receipt, most=proof.MAX_LENGTH).strip()
        given = _read(keys, most=MAX_KEYS) if keys is not None else _fetched(str(url))
        try:
            jwks = strict.parse(raw=given.encode(), max_depth=5)
            if not isinstance(jwks, dict):
                raise CommandError("The keys are no key set: it is a JSON object with `keys` in it.")
            claims = proof.verify(receipt=text, jwks=jwks)
        except strict.NotStrict as exc:
            raise CommandError(f"The keys are no key set: its JSON {exc}.") from exc
        except proof.NotVerified as exc:
            raise CommandError(f"Not verified: {exc}.") from exc
        self.stdout.write("The receipt is genuine. It says, with people by the numbers of their accounts:")
        for name, value in _said(claims):
            self.stdout.write(f"  {display.text(name)}: {display.text(value)}")


def _read(file: Path, *, most: int) -> str:
    try:
        with file.open("rb") as opened:
            raw = opened.read(most + 1)
    except OSError as exc:
        raise CommandError(f"{display.text(str(file))} cannot be read: {exc.strerror}.") from exc
    if len(raw) > most:
        raise CommandError(f"{display.text(str(file))} is longer than {most} bytes.")
    return raw.decode("utf-8", "replace")


def _fetched(url: str) -> str:
    if not url.startswith("https://"):
        raise CommandError("Give an https URL: keys that come by http may be anybody's.")
    try:
        with (
            httpx2.Client(verify=ssl.create_default_context(), timeout=10) as client,
            client.stream("GET", url) as answer,
        ):
            answer.raise_for_status()
            raw = bytearray()
            for chunk in answer.iter_bytes():
                raw += chunk
                if len(raw) > MAX_KEYS:
                    raise CommandError(f"What the URL answers is longer than {MAX_KEYS} bytes.")
    except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
        raise CommandError(f"The keys could not be fetched: {display.text(str(exc))}") from exc
    return raw.decode("utf-8", "replace")


def _said(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every claim that is not empty with the path to it, as one line."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _said(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for number, inner in enumerate(value, start=1):
            yield from _said(inner, f"{name}.{number}")
    elif value != "":
        yield name, value if isinstance(value, str) else json.dumps(value)

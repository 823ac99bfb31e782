"""Columns that hold any Python string exactly, and the values that a column may have."""

from __future__ import annotations

import enum
import json

from django.db import models


def known(values: type[enum.StrEnum]) -> list[tuple[str, str]]:
    """The values of a column that has few, each with its name for people."""
    return [(str(value), str(value).title()) for value in values]


class ExactTextField(models.TextField):  # type: ignore[type-arg]  # generic in the stubs alone
    """Text from outside, stored as an ASCII JSON string.

    Postgres has no U+0000 in text and no half of a surrogate pair, and both are in what agents send.
    Stripping them would change what was asked.
    """

    def get_prep_value(self, value: object) -> str | None:
        return None if value is None else json.dumps(str(value))

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return None if value is None else str(json.loads(value))

"""Columns that hold any Python string exactly."""

from __future__ import annotations

import json

from django.db import models


class ExactTextField(models.TextField):  # type: ignore[type-arg]  # generic in the stubs alone
    """Text from outside, stored as an ASCII JSON string.

    Postgres has no U+0000 in text and no half of a surrogate pair, and both are in what agents send.
    Stripping them would change what was asked.
    """

    def get_prep_value(self, value: object) -> str | None:
        return None if value is None else json.dumps(str(value))

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return None if value is None else str(json.loads(value))

"""The arguments in a message, where the operator lets them out, without what a field's name calls secret.

Masking is for messages alone: the page shows the person what they decide on.
"""

from __future__ import annotations

import json
import re

from django.conf import settings

from confirmhub import display
from confirmhub.confirmations.actions import Json
from confirmhub.confirmations.models import Confirmation

MOST = 8  # arguments in a message
LIMIT = 200  # characters of one
# Signs that no data can spell: the renderer escapes the brackets in every value.
HIDDEN = "\u27e8hidden here, shown on the page\u27e9"


def lines(confirmation: Confirmation) -> list[str]:
    """One line an argument, `name = value`; none unless the operator allows it."""
    if not settings.NOTICE_ARGUMENTS:
        return []
    items = confirmation.argument_items
    found = [f"{display.short(name, LIMIT)} = {_shown(name, value)}" for name, value in items[:MOST]]
    if len(items) > MOST:
        found.append(f"\u27e8{len(items) - MOST} more on the page\u27e9")
    return found


def _shown(name: str, value: Json) -> str:
    if _is_secret(name) or _holds_secret(value):
        return HIDDEN
    return display.short(value if isinstance(value, str) else json.dumps(value), LIMIT)


def _holds_secret(value: Json) -> bool:
    """Whether a field anywhere inside has a secret's name."""
    waiting: list[Json] = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            if any(map(_is_secret, current)):
                return True
            waiting += current.values()
        elif isinstance(current, list):
            waiting += current
    return False


def _is_secret(name: str) -> bool:
    """Whether a declared name is in this one, whatever signs or invisible characters stand between."""
    plain = _plain(name)
    return any(_plain(declared) in plain for declared in settings.SECRET_FIELDS)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())

"""Whose token this is for MCP, as the bridge looks it up: the statement for many, here for one."""

from __future__ import annotations

import psycopg
from django.db import connection
from psycopg.types.json import JsonbLoader

from confirmhub.oauth import bearer
from confirmhub.oauth.bearer import Bearer


def find(*, token: str) -> Bearer | None:
    """The bearer, or None, for whatever reason; its use is noted."""
    sql, values = bearer.statement(tokens=[token], for_api=False)
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.adapters.register_loader("jsonb", JsonbLoader)  # which Django's connection reads as text
        found, used = bearer.read(tokens=[token], rows=cursor.execute(sql.encode("ascii"), values))
    if used:
        bearer.note_use(ids=used)
    return found.get(token)

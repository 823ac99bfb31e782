"""Turn a row's deadline back, or let Postgres's clock stand."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.db import connection, transaction

from confirmhub.confirmations.models import Confirmation


def make_overdue(confirmation: Confirmation, **deadlines: Any) -> Confirmation:
    """Set its deadlines, which only the tables' owner can, by lifting the guard for the moment."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table with checks to come cannot be altered
        cursor.execute("ALTER TABLE confirmations_confirmation DISABLE TRIGGER USER")
        Confirmation.objects.filter(id=confirmation.id).update(**deadlines)
        cursor.execute("ALTER TABLE confirmations_confirmation ENABLE TRIGGER USER")
    confirmation.refresh_from_db()
    return confirmation


@contextlib.contextmanager
def standing_at(moment: dt.datetime) -> Iterator[None]:
    """Let the clock that this connection's statements read stand at one moment.

    A schema that is searched before Postgres's own has a clock of the same name.
    """
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA standing")
        cursor.execute(
            "CREATE FUNCTION standing.statement_timestamp() RETURNS timestamptz"
            f" IMMUTABLE RETURN timestamptz '{moment.isoformat()}'"
        )
        cursor.execute("SET search_path = standing, public, pg_catalog")
        try:
            yield
        finally:
            cursor.execute("RESET search_path")
            cursor.execute("DROP SCHEMA standing CASCADE")

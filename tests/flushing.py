"""The end of a test that commits: every row that it wrote goes, at a thirtieth of what Django's flush costs.

Django truncates every table and makes the permissions and groups of `migrate` anew. Here the tables that have
rows are emptied by DELETE, and what `migrate` made stays, or is put back where a test has changed it.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

# What `migrate` fills, in the order in which its rows refer to one another.
MADE = ("django_content_type", "auth_permission", "auth_group", "auth_group_permissions")

_made: dict[str, list[tuple[Any, ...]]] = {}


def remember() -> None:
    """Take down the rows that `migrate` made, before any test runs."""
    with connection.cursor() as cursor:
        _made.update((table, _rows(cursor, table)) for table in MADE)


def flush() -> None:
    """Leave the database as it was after `migrate`."""
    found = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = sorted(set(found) - set(MADE))
    with transaction.atomic(), connection.cursor() as cursor:
        # As TRUNCATE would: wait for whoever still writes, so that nothing comes in behind our back.
        cursor.execute(f"LOCK TABLE {_listed([*MADE, *tables])} IN SHARE ROW EXCLUSIVE MODE")
        _empty(cursor, _with_rows(cursor, tables))
        if any(_rows(cursor, table) != _made[table] for table in MADE):
            _empty(cursor, list(MADE))
            for table, rows in _made.items():
                places = ", ".join(["%s"] * len(rows[0]))
                cursor.executemany(f"INSERT INTO {_listed([table])} VALUES ({places})", rows)


def _with_rows(cursor: CursorWrapper, tables: list[str]) -> list[str]:
    asked = (f"SELECT '{table}' WHERE EXISTS (SELECT FROM {_listed([table])})" for table in tables)
    cursor.execute(" UNION ALL ".join(asked))
    return [table for (table,) in cursor.fetchall()]


def _empty(cursor: CursorWrapper, tables: list[str]) -> None:
    """Delete all rows. The triggers that keep rows from being deleted are the tables' owner's to turn off."""
    if tables:
        cursor.execute("; ".join(f"ALTER TABLE {_listed([name])} DISABLE TRIGGER USER" for name in tables))
        cursor.execute("; ".join(f"DELETE FROM {_listed([name])}" for name in tables))
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # no table is altered while a check of its rows waits
        cursor.execute("; ".join(f"ALTER TABLE {_listed([name])} ENABLE TRIGGER USER" for name in tables))
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def _rows(cursor: CursorWrapper, table: str) -> list[tuple[Any, ...]]:
    cursor.execute(f"SELECT * FROM {_listed([table])} ORDER BY id")
    return cursor.fetchall()


def _listed(tables: list[str]) -> str:
    return ", ".join(map(connection.ops.quote_name, tables))

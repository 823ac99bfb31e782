"""The two roles in the database: one owns the tables and migrates, one serves.

What serves cannot alter a table, drop a trigger, or rewrite the log of events, so a fault in
the service cannot either.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

OWNER = "confirmhub_owner"
SERVICE = "confirmhub"
DATABASE = "confirmhub"

# What the service may do with a table, where it is less than everything. The names are the
# tables of `confirmations`; rows there are history, and none is ever deleted.
READ = ("SELECT",)
APPEND = ("SELECT", "INSERT")
KEEP = ("SELECT", "INSERT", "UPDATE")
ALL = ("SELECT", "INSERT", "UPDATE", "DELETE")
RIGHTS = {
    "aap_submission": APPEND,
    "confirmations_event": APPEND,
    "confirmations_confirmation": KEEP,
    "confirmations_decision": APPEND,
    "confirmations_outcome": APPEND,
    "confirmations_checkpoint": READ,
    "confirmations_seal": READ,
    "confirmations_halt": KEEP,
    "confirmations_haltevent": READ,
    "django_migrations": READ,
}


def create(*, admin_url: str) -> None:
    """Make the roles and the database where they are missing. `admin_url` is a superuser's."""
    with psycopg.connect(admin_url, autocommit=True) as connection:
        for role in (OWNER, SERVICE):
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        made = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
        if not made:
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), sql.Identifier(OWNER))
            )


def let_create(*, admin_url: str) -> None:
    """Let the owner make databases and roles, as tests need."""
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER ROLE {} CREATEDB CREATEROLE").format(sql.Identifier(OWNER)))


def grant(*, owner_url: str, service: str) -> None:
    """Give the role `service` what it needs on the tables of `owner_url`'s role, and no more.

    Run it after every migration. Where both are one role there is nothing to take away: an
    owner can give itself everything back.
    """
    with psycopg.connect(owner_url) as connection:
        to = sql.Identifier(service)
        if service == connection.info.user:
            return
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(to))
        connection.execute(sql.SQL("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {}").format(to))
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        # These run with their owner's rights, and are no one else's to call.
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))
        for function in map(sql.SQL, ("confirmhub_retire(interval, integer)", "confirmhub_seal(integer)")):
            connection.execute(sql.SQL("REVOKE ALL ON FUNCTION {} FROM PUBLIC").format(function))
            connection.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(function, to))
        for (table,) in tables.fetchall():
            name = sql.Identifier("public", table)
            rights = sql.SQL(", ").join(map(sql.SQL, RIGHTS.get(table, ALL)))
            connection.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(name, to))
            connection.execute(sql.SQL("GRANT {} ON {} TO {}").format(rights, name, to))

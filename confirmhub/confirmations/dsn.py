"""How to reach the database without Django, for connections that listen."""

from __future__ import annotations

from django.db import connection
from psycopg.conninfo import make_conninfo


def conninfo() -> str:
    """The libpq connection string of Django's own database."""
    settings = connection.settings_dict
    known = {
        "dbname": settings["NAME"],
        "user": settings["USER"],
        "password": settings["PASSWORD"],
        "host": settings["HOST"],
        "port": settings["PORT"],
        **{key: settings["OPTIONS"][key] for key in ("sslmode", "sslrootcert") if key in settings["OPTIONS"]},
    }
    return make_conninfo("", **{key: value for key, value in known.items() if value})


def limits() -> str:
    """How long a statement may wait and run, as libpq's `options`: as on Django's own connections."""
    return str(connection.settings_dict["OPTIONS"]["options"])


def keyed() -> str:
    """The same for connections whose few statements find rows by their keys, over and over.

    A plan for any parameters does for them: to make one for those at hand takes longer than to run it. And
    none reads a whole table, however many keys the planner takes there to be in a parameter.
    """
    return f"{limits()} -c plan_cache_mode=force_generic_plan -c enable_hashjoin=off -c enable_mergejoin=off"

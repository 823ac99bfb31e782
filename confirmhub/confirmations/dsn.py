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

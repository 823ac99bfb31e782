"""What the service's processes are told: the settings of the embedded default, as variables.

Whatever the user has set stands; the rest comes from the state folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from confirmhub.ops import roles
from confirmhub.ops.postgres import Cluster
from confirmhub.ops.state import State

ROOT = Path(__file__).resolve().parent.parent.parent  # the checkout, where the children start


class Database(NamedTuple):
    """The one database, by two roles. Both URLs are the same where only one role was given."""

    service_url: str
    owner_url: str

    @property
    def service_role(self) -> str:
        return unquote(urlsplit(self.service_url).username or "")


def given_database() -> Database | None:
    """Return the database that DATABASE_URL names, if it is set.

    DATABASE_OWNER_URL may name the role that owns the tables, so that DATABASE_URL's need not.
    """
    service_url = os.environ.get("DATABASE_URL")
    if not service_url:
        return None
    return Database(service_url, os.environ.get("DATABASE_OWNER_URL") or service_url)


def embedded_database(cluster: Cluster) -> Database:
    """Return the database of the embedded cluster."""
    return Database(cluster.url(roles.SERVICE), cluster.url(roles.OWNER))


def for_service(state: State, *, database_url: str, public_url: str) -> dict[str, str]:
    """Return the environment of a process that works on `database_url`."""
    env = dict(os.environ)
    env.pop("DATABASE_OWNER_URL", None)  # what serves must not own
    env["DATABASE_URL"] = database_url
    for name, file in (
        ("SECRET_KEY", "secret-key"),
        ("SEALING_KEYS", "sealing-keys"),
        ("TOKEN_KEY", "token-key"),
        ("RECEIPT_KEYS", "receipt-keys"),
    ):
        if not env.get(name):
            env.setdefault(f"{name}_FILE", str(state.secrets / file))
    if not env.get("PUBLIC_URL"):
        env["PUBLIC_URL"] = public_url
    env.setdefault("STATIC_ROOT", str(state.static))
    env.setdefault("FILE_ROOTS", str(state.demo_files))
    if not env.get("EMAIL_HOST"):
        env.setdefault("EMAIL_FILE_PATH", str(state.mail))
    env["DJANGO_SETTINGS_MODULE"] = "confirmhub.settings"
    env["PYTHONUNBUFFERED"] = "1"
    return env

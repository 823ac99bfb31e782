"""Make the database and the static files ready, then end: `python -m confirmhub.ops.prepare FD`.

A process of its own, the only one that works as the owner of the tables. It writes what it did
as one JSON object to the descriptor FD.
"""

from __future__ import annotations

import json
import os
import secrets
import sys

import django
import psycopg
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection, transaction

from confirmhub.database.base import patience
from confirmhub.ops import misconfigured, roles
from confirmhub.ops.screen import ADMINISTRATOR

LOCK = 0x636F6E66  # "conf": so that two that start on one database migrate one after the other


def main() -> None:
    """Migrate, grant, collect the static files, and make the first administrator."""
    report_to = int(sys.argv[1])
    owner_url = os.environ["DATABASE_URL"]
    with misconfigured.telling():
        django.setup()
        misconfigured.load_tools()
    # A migration may take longer than any request may.
    connection.settings_dict["OPTIONS"]["options"] = "-c lock_timeout=10s"
    with psycopg.connect(owner_url, autocommit=True) as guard:
        guard.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        with patience(seconds=None):
            call_command("migrate", interactive=False, verbosity=1)
        roles.grant(owner_url=owner_url, service=os.environ["CONFIRMHUB_SERVICE_ROLE"])
        call_command("collectstatic", interactive=False, clear=True, verbosity=0)
        password = _make_administrator()
    with os.fdopen(report_to, "w", encoding="utf-8") as report:
        json.dump({"administrator": ADMINISTRATOR, "password": password}, report)


def _make_administrator() -> str | None:
    """Make the administrator where there is nobody yet. Returns the password, which is kept nowhere."""
    with transaction.atomic():
        if get_user_model().objects.exists():
            return None
        password = secrets.token_urlsafe(12)
        # An address, or no notice would ever be written to the mail folder for the one person there is.
        email = f"{ADMINISTRATOR}@localhost"
        get_user_model().objects.create_superuser(ADMINISTRATOR, email=email, password=password)
    return password


if __name__ == "__main__":
    main()

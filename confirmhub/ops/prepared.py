"""Whether `prepare` has anything to do, told without loading Django: a start then takes half the time.

What it did is remembered as one digest of all that it depends on: the code, the settings and the
migrations that the database itself says were applied.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from confirmhub.ops.environment import ROOT, Database
from confirmhub.ops.state import State

STAMP = "prepared"


def is_current(state: State, database: Database) -> bool:
    """Return whether the database and the static files are as `remember` found them."""
    try:
        remembered = (state.folder / STAMP).read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return bool(remembered) and remembered == _digest(state, database)


def remember(state: State, database: Database) -> None:
    """Write down that `prepare` has just done its work."""
    stamp = state.folder / STAMP
    new = stamp.with_suffix(".new")
    new.write_text(_digest(state, database), encoding="ascii")
    new.replace(stamp)


def forget_heartbeats(database: Database) -> None:
    """Remove the heartbeats of processes that are gone, so that only living ones count as ready."""
    with psycopg.connect(database.owner_url) as connection:
        connection.execute("DELETE FROM ops_heartbeat")


def _digest(state: State, database: Database) -> str:
    digest = hashlib.sha256()
    # The password is left out: it changes nothing, and the digest is not a place for it.
    owner = urlsplit(database.owner_url)
    where = (owner.hostname, owner.port, owner.path, owner.query, owner.username)
    digest.update(repr((where, database.service_role, str(state.static))).encode())
    try:
        with psycopg.connect(database.owner_url) as connection:
            applied = connection.execute("SELECT app, name FROM django_migrations ORDER BY 1, 2")
            digest.update(repr(applied.fetchall()).encode())
    except psycopg.errors.UndefinedTable:
        return ""
    for path in _sources():
        digest.update(f"\n{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _sources() -> list[Path]:
    code = (ROOT / "confirmhub").rglob("*")
    files = [path for path in code if path.is_file() and path.suffix != ".pyc"]
    return [ROOT / "requirements.txt", *sorted(files)]

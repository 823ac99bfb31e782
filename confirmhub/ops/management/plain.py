"""What the commands for operators share: what is wrong with the database is said in a line."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from psycopg.errors import UndefinedColumn, UndefinedTable

from confirmhub import logs


class PlainCommand(BaseCommand):
    """A command that reads and writes what the service keeps."""

    def run_from_argv(self, argv: list[str]) -> None:
        """Run it from a terminal; who reads no more of it, such as `head`, ends it without a word."""
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run it; a failure of the database becomes a line that says what to do."""
        try:
            return super().execute(*args, **options)
        except DatabaseError as exc:
            if isinstance(exc.__cause__, UndefinedTable | UndefinedColumn):
                raise CommandError(
                    "This database does not have the tables of this version: start the service on it first. "
                    "With ./hub up, name the same CONFIRMHUB_STATE here as there, as the same user."
                ) from exc
            raise CommandError(f"The database cannot be used: {logs.words(exc)}") from exc

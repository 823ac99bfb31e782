"""What benchmarks share: a database that syncs to disk, rows by the hundred thousand, one line of figures."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer rows and shorter runs")
    return parser.parse_args()


@contextmanager
def database() -> Iterator[str]:
    """A migrated throw-away database that syncs to disk as a real one does, with Django set up on it."""
    from confirmhub.ops.postgres import temporary

    os.environ["DJANGO_SETTINGS_MODULE"] = "confirmhub.settings"
    for name in ("SECRET_KEY", "SEALING_KEYS", "TOKEN_KEY", "RECEIPT_KEYS"):
        os.environ[name] = secrets.token_hex(32)
    with temporary(durable=True) as url:
        os.environ["DATABASE_URL"] = url
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=ROOT, check=True)
        import django

        django.setup()
        yield url
        from django.db import connection

        connection.close()


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def figures(**values: object) -> None:
    """The last line: one JSON object."""
    sys.stdout.write(json.dumps(values) + "\n")


def percentile(values: Sequence[float], share: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]

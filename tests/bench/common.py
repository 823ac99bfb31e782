"""What benchmarks share: a database that syncs to disk, bars that are met or missed, one line of figures."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

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


def tell(name: str, values: Mapping[str, object]) -> None:
    """One line of what was measured, for people."""
    say(f"{name:<16}  " + "  ".join(f"{each} {_spelled(value)}" for each, value in values.items()))


class Bar(NamedTuple):
    """What a figure must keep to."""

    what: str
    found: float
    limit: float
    unit: str = ""
    at_least: bool = False
    """Whether the limit is the least that will do, and not the most."""

    @property
    def met(self) -> bool:
        return self.found >= self.limit if self.at_least else self.found <= self.limit


def conclude(*bars: Bar, **values: object) -> None:
    """Say of each bar whether it is met, then all in one JSON object; exit with 1 where one is missed."""
    width = max((len(bar.what) for bar in bars), default=0)
    for bar in bars:
        limit = f"{'at least' if bar.at_least else 'at most'} {_spelled(bar.limit)}"
        verdict = "met   " if bar.met else "MISSED"
        say(f"{verdict}  {bar.what:<{width}}  {_spelled(bar.found)} {bar.unit}".rstrip() + f"  ({limit})")
    missed = [bar.what for bar in bars if not bar.met]
    judged = {bar.what: {"found": bar.found, "bar": bar.limit, "met": bar.met} for bar in bars}
    sys.stdout.write(json.dumps(values | {"bars": judged, "missed": missed}) + "\n")
    if missed:
        sys.exit(1)


def _spelled(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def percentile(values: Sequence[float], share: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]

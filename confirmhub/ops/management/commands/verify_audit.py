"""Check every link of the log, and name the first that does not hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from confirmhub.confirmations import audit, evidence
from confirmhub.confirmations.evidence import BrokenLog, Record
from confirmhub.ops.management.plain import PlainCommand


class Command(PlainCommand):
    help = "Check the log of every confirmation and the checkpoints; exits with 1 at the first broken link."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--file", type=Path, help="an export to check instead of the database; no database is needed"
        )
        parser.add_argument("--json", dest="as_json", action="store_true", help="for programs")

    def handle(self, *_: Any, file: Path | None, as_json: bool, **__: Any) -> None:
        try:
            if file is not None:
                checked = evidence.check(_lines(file))
            else:
                with audit.records() as records:
                    checked = evidence.check(records)
        except BrokenLog as exc:
            if as_json:
                self.stdout.write(json.dumps({"whole": False, "broken": str(exc)}))
            raise CommandError(f"The log is broken: {exc}.") from exc
        except OSError as exc:
            raise CommandError(f"{file} cannot be read: {exc.strerror}.") from exc
        if as_json:
            self.stdout.write(json.dumps({"whole": True} | asdict(checked)))
            return
        gone = f"; {checked.gone} sealed logs have left, past the time they are kept" if checked.gone else ""
        fresh = (
            f" ({checked.unsealed_halts} of their entries not sealed yet)" if checked.unsealed_halts else ""
        )
        self.stdout.write(
            f"Every link holds: {_count(checked.confirmations, 'confirmation')}"
            f" ({checked.unsealed} not sealed yet), {_count(checked.events, 'event')},"
            f" {_count(checked.checkpoints, 'checkpoint')}, {_count(checked.halts, 'stop')}{fresh}{gone}."
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _lines(file: Path) -> Iterator[Record]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line.decode("ascii"))
            except (ValueError, RecursionError) as exc:
                raise BrokenLog(f"line {number} of the export is not JSON") from exc
            yield record

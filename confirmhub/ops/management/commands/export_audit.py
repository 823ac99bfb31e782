"""Write the whole log as JSON Lines, which `verify_audit --file` checks without a database."""

from __future__ import annotations

import json
from typing import Any

from confirmhub.confirmations import audit
from confirmhub.ops.management.plain import PlainCommand


class Command(PlainCommand):
    help = "Write the log of every confirmation, and the checkpoints, as JSON Lines to standard output."

    def handle(self, *_: Any, **__: Any) -> None:
        with audit.records() as records:
            for record in records:
                self.stdout.write(json.dumps(record, separators=(",", ":")))

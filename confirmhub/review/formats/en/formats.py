"""How Django's admin writes times: as all our pages do."""

from __future__ import annotations

DATETIME_FORMAT = "Y-m-d H:i:s T"

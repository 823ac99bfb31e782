"""The logs of the processes under `up`: a bounded part of the disk, however much a flood makes them write."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

KEEP = 10 * 1024 * 1024  # bytes


def shorten(folder: Path) -> None:
    """Begin each log anew that has grown longer than `KEEP`; what it held stays beside it, as `.log.1`.

    It is copied and cut, since whoever writes it has it open, and appends. A line may be lost in between.
    """
    for log in folder.glob("*.log"):
        with contextlib.suppress(FileNotFoundError):  # somebody has taken it away meanwhile
            if log.stat().st_size > KEEP:
                # Where there is no room for the copy, it is needed all the more.
                with contextlib.suppress(OSError):
                    shutil.copyfile(log, log.with_suffix(".log.1"))
                os.truncate(log, 0)

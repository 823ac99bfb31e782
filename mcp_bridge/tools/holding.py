"""The folder that holds a file between its place and its deletion, and what to say of one that was left.

It is left where a server is killed in between, or where what it took could not be put back. Nothing is
put back by itself then: whether the file was to go, and what has come to its place, is for a person to see.
"""

from __future__ import annotations

import os
import re
import stat
import uuid
from pathlib import PurePosixPath

FILE = "file"  # what a held file is called there; its own name may be as long as a name can be
TOLD = 3  # folders that one answer names

_NAME = re.compile(r"\.confirmhub-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def name(confirmation_id: uuid.UUID) -> str:
    """What the folder is called. It says to whom it belongs."""
    return f".confirmhub-{confirmation_id}"


def note(folder: str) -> str:
    """What a folder of this name is, or nothing where it is none of ours."""
    found = _NAME.fullmatch(folder)
    if found is None:
        return ""
    return (
        f"delete_file made this folder for the confirmation {found[1]}. What it took from beside it and has "
        f'not deleted is in it, named "{FILE}": a deletion is going on, or was cut off. A person has to look.'
    )


def beside(folder: int) -> str:
    """What to say of a file that is not in this open folder: it may be held there."""
    left = sorted(entry for entry in os.listdir(folder) if _is_ours(entry, folder))
    if not left:
        return ""
    more = f" and {len(left) - TOLD} more" if len(left) > TOLD else ""
    where = ", ".join(f"{entry}/{FILE}" for entry in left[:TOLD])
    return (
        f" It may be held, not deleted, in the same folder as {where}{more}: a deletion is going on, or was "
        "cut off. A person has to look."
    )


def after(confirmation_id: uuid.UUID, path: PurePosixPath) -> str:
    """Where to look for a file when it is not known what became of its deletion. Not yet made visible."""
    return str(path.parent / name(confirmation_id) / FILE)


def _is_ours(entry: str, folder: int) -> bool:
    if not _NAME.fullmatch(entry):
        return False
    try:
        return stat.S_ISDIR(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False  # it went meanwhile

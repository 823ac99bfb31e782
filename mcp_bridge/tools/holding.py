"""Takes a file out of its place, looks at what it holds, and acts on that; or puts it back.

It is held in a folder of our own beside it. The folder is left where a server is killed in between, or where
what it took could not be put back. Nothing is put back by itself then: whether the file was to go, and what
has come to its place, is for a person to see.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import uuid
from collections.abc import Callable
from pathlib import PurePosixPath

from mcp.server.mcpserver.exceptions import ToolError

from mcp_bridge.tools import paths, renaming

FILE = "file"  # what a held file is called there; its own name may be as long as a name can be
TOLD = 3  # folders that one answer names

_NAME = re.compile(r"\.confirmhub-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")

logger = logging.getLogger(__name__)


def take(
    path: PurePosixPath,
    *,
    folder: int,
    confirmation_id: uuid.UUID,
    touched: str,
    is_same: Callable[[int], bool],
    act: Callable[[int], None],
    done: str,
) -> int:
    """Take the file out of the open `folder` by one atomic rename, and `act` on it if `is_same`.

    Both get the handle of the folder that holds it, as `FILE`. Otherwise it is put back. `touched` is the
    ctime that it must still have, or nothing. `done` says what it is that happens, such as "deleted".
    Returns its size in bytes.

    Raises:
        ToolError: It was not done; the text says where the file is.
    """
    place = name(confirmation_id)
    try:
        # The rename changes this time itself, so that it is compared right before, not after it.
        now = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_ctime_ns
        if touched and touched != str(now):
            raise ToolError(f"{paths.shown(path)} was changed at the last moment. It was not {done}.")
        # Next to the file, so that the rename stays on one file system, and closed to others, so that
        # nobody touches what is in it.
        os.mkdir(place, mode=0o700, dir_fd=folder)
        with paths.within(folder, place) as held:
            if not _is_closed(held):
                raise ToolError(
                    f"{paths.shown(path)} was not {done}: the folder {place} that was made beside it is not "
                    "closed to others, or was swapped."
                )
            os.rename(path.name, FILE, src_dir_fd=folder, dst_dir_fd=held)
            size = os.stat(FILE, dir_fd=held, follow_symlinks=False).st_size
            _act_or_put_back(path, folder=folder, held=held, place=place, is_same=is_same, act=act, done=done)
            return size
    except OSError as exc:
        raise ToolError(f"{paths.shown(path)} was not {done}: {exc.strerror}.") from exc
    finally:
        _remove_if_empty(folder, place)


def _is_closed(held: int) -> bool:
    """Whether this folder, just made, is empty and nobody else's to touch.

    Who may write beside it can put another in its place before it is opened; and some file systems know no
    modes.
    """
    status = os.fstat(held)
    is_ours = status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077
    return is_ours and not os.listdir(held)


def _act_or_put_back(
    path: PurePosixPath,
    *,
    folder: int,
    held: int,
    place: str,
    is_same: Callable[[int], bool],
    act: Callable[[int], None],
    done: str,
) -> None:
    why = "became another file at the last moment"
    try:
        if is_same(held):
            act(held)
            return
    except ToolError as exc:  # it could not be looked at
        why = f"was to be looked at once more, and was not: {str(exc).rstrip('.')}"
    except OSError as exc:
        why = f"could not be {done}: {exc.strerror}"
    try:
        renaming.rename(FILE, path.name, src=held, dst=folder)
        where = "it is back in its place"
    except FileExistsError:
        where = f"its name was taken meanwhile, so it is kept in the folder {place} beside it"
    except OSError as exc:
        logger.exception("a file could not be put back")
        where = f"it could not be put back ({exc.strerror}), so it is kept in the folder {place} beside it"
    raise ToolError(f"{paths.shown(path)} {why}. It was not {done}; {where}.")


def _remove_if_empty(folder: int, place: str) -> None:
    try:
        os.rmdir(place, dir_fd=folder)
    except FileNotFoundError:
        return  # it was refused before the folder was made
    except OSError as exc:
        logger.warning("left %s behind: %s", place, exc.strerror)


def name(confirmation_id: uuid.UUID) -> str:
    """What the folder is called. It says to whom it belongs."""
    return f".confirmhub-{confirmation_id}"


def note(folder: str) -> str:
    """What a folder of this name is, or nothing where it is none of ours."""
    found = _NAME.fullmatch(folder)
    if found is None:
        return ""
    return (
        f"A file tool made this folder for the confirmation {found[1]}. What it took from beside it and has "
        f'not deleted or moved is in it, named "{FILE}": it is at it, or was cut off. A person has to look.'
    )


def beside(folder: int) -> str:
    """What to say of a file that is not in this open folder: it may be held there."""
    left = sorted(entry for entry in os.listdir(folder) if _is_ours(entry, folder))
    if not left:
        return ""
    more = f" and {len(left) - TOLD} more" if len(left) > TOLD else ""
    where = ", ".join(f"{entry}/{FILE}" for entry in left[:TOLD])
    return (
        f" It may be held, not deleted or moved, in the same folder as {where}{more}: a tool is at it, or "
        "was cut off. A person has to look."
    )


def after(confirmation_id: uuid.UUID, path: PurePosixPath) -> str:
    """Where to look for a file when it is not known what became of it. Not yet made visible."""
    return str(path.parent / name(confirmation_id) / FILE)


def _is_ours(entry: str, folder: int) -> bool:
    if not _NAME.fullmatch(entry):
        return False
    try:
        return stat.S_ISDIR(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False  # it went meanwhile

"""The tool that moves or renames a file, with the care that the deletion of one takes.

Both folders are held by handles that were reached without following a link, and are known by what they are,
as the file is. What was taken is looked at once more, and gets its new name in one step that replaces
nothing, or its old one back.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import AfterValidator, BaseModel, Field

from confirmhub.confirmations.actions import Observation
from confirmhub.confirmations.receipts import Receipt
from mcp_bridge.guarded import Guarded
from mcp_bridge.tools import holding, looking, paths, renaming

NewPath = Annotated[
    str,
    Field(
        description="Where it goes: an absolute path or file:/// URI that nothing has yet. The folder exists."
    ),
    AfterValidator(paths.canonical),
]


class MoveFile(BaseModel):
    """What move_file takes."""

    path: paths.FilePath
    new_path: NewPath


def _observe(arguments: MoveFile) -> Observation:
    path, new_path = _both(arguments)
    with _opened(path, new_path) as (folder, target):
        seen = looking.look(folder, path.name, path)
        _refuse_a_name_that_is_taken(target, new_path)
        facts = (("File", str(path)), ("Moves to", str(new_path)), *seen.facts)
        return Observation(facts=facts, fingerprint=seen.fingerprint(folder, target))


def _execute(receipt: Receipt, arguments: MoveFile, seen: Observation) -> str:
    path, new_path = _both(arguments)
    folders, lasting, touched = looking.parts(seen.fingerprint)
    with _opened(path, new_path) as (folder, target):
        if looking.identity(folder, target) != folders:
            raise ToolError(
                f"The folder of {paths.shown(path)} or of {paths.shown(new_path)} became another one. "
                "Nothing was moved."
            )
        holding.take(
            path,
            folder=folder,
            confirmation_id=receipt.confirmation_id,
            touched=touched,
            is_same=lambda held: looking.is_still(lasting, folder=held, name=holding.FILE, path=path),
            act=lambda held: renaming.rename(holding.FILE, new_path.name, src=held, dst=target),
            done="moved",
        )
    return f"Moved {paths.shown(path)} to {paths.shown(new_path)}."


def _both(arguments: MoveFile) -> tuple[PurePosixPath, PurePosixPath]:
    path = paths.inside(paths.raw(arguments.path))
    new_path = paths.inside(paths.raw(arguments.new_path))
    # Who may see one open folder need not be who may see another.
    if not paths.share_a_root(path, new_path):
        raise ToolError(
            f"{paths.shown(path)} and {paths.shown(new_path)} are in two of the open folders. A file can be "
            "moved only within one."
        )
    if holding.note(new_path.parent.name):
        raise ToolError(f"{paths.shown(new_path.parent)} is the server's own. Choose another folder.")
    return path, new_path


@contextmanager
def _opened(path: PurePosixPath, new_path: PurePosixPath) -> Iterator[tuple[int, int]]:
    with paths.opened(path.parent) as folder, paths.opened(new_path.parent) as target:
        if os.fstat(folder).st_dev != os.fstat(target).st_dev:
            raise ToolError(
                f"{paths.shown(new_path.parent)} is on another file system, so that the file cannot be moved "
                "there in one step."
            )
        yield folder, target


def _refuse_a_name_that_is_taken(target: int, new_path: PurePosixPath) -> None:
    try:
        os.stat(new_path.name, dir_fd=target, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise ToolError(f"{paths.shown(new_path)} cannot be used: {exc.strerror}.") from exc
    raise ToolError(f"{paths.shown(new_path)} exists. Nothing is ever overwritten; choose another name.")


def _unfinished(confirmation_id: uuid.UUID, arguments: MoveFile) -> str:
    path = PurePosixPath(os.fsdecode(paths.raw(arguments.path)))
    held, new_path = holding.after(confirmation_id, path), os.fsdecode(paths.raw(arguments.new_path))
    return f"The file may be held, not moved, as {paths.shown(held)}, or be at {paths.shown(new_path)}."


MOVE_FILE: Guarded[Any] = Guarded(
    name="move_file",
    title="Move or rename a file",
    description=(
        "Move or rename one regular file within a folder that is open to the file tools. Nothing is "
        "overwritten: the new path must not exist, and its folder must."
    ),
    question="Move this file?",
    arguments=MoveFile,
    scopes=frozenset({"files:move"}),
    observe=_observe,
    execute=_execute,
    unfinished=_unfinished,
)

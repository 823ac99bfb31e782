"""The file tools: see what is in the folders that the operator opened, delete a file that a person allowed.

Between the question and the deletion a path can come to mean another file. So the file is known by what
it is (identity, size, time, content), and is taken out of its place by one atomic rename before anything
is deleted: what is then held is looked at once more, and is deleted, or put back.
"""

from __future__ import annotations

import datetime as dt
import os
import stat
import uuid
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from django.conf import settings
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from confirmhub.confirmations.actions import Observation
from confirmhub.confirmations.receipts import Receipt
from mcp_bridge import guard
from mcp_bridge.guarded import Guarded
from mcp_bridge.registry import BridgeTool, hub_tool
from mcp_bridge.threads import look_in_thread
from mcp_bridge.tools import holding, looking, moving, paths

MAX_LISTED = 200

type Kind = Literal["file", "folder", "link", "other"]


class DeleteFile(BaseModel):
    """What delete_file takes."""

    path: paths.FilePath


class Entry(BaseModel):
    """One name in a folder."""

    path: str = Field(description="Pass this to other tools exactly as it is.")
    shown: str = Field(description="The name for people: one line, with invisible characters made visible.")
    kind: Kind
    size: int | None = Field(description="In bytes, for a file.")
    changed_at: dt.datetime | None
    note: str = Field("", description="What it is, where it is one of the server's own.")


class Listing(BaseModel):
    """What is in a folder."""

    entries: list[Entry]
    left_out: int = Field(description="How many more there are than are listed.")


async def list_files(
    path: Annotated[
        str | None,
        Field(description="A folder's absolute path or file:/// URI. Without it: the open folders."),
    ] = None,
) -> Listing:
    """List a folder that is open to the file tools, or the open folders themselves; at most 200 names."""
    return await look_in_thread(_list, path)


def _list(path: str | None) -> Listing:
    if path is None:
        paths.refuse_without_roots()
        return Listing(entries=[_entry(os.fsencode(root), None) for root in settings.FILE_ROOTS], left_out=0)
    try:
        folder = paths.inside(paths.raw(path), or_root=True)
    except ValueError as exc:
        raise ToolError(str(exc)) from exc
    with paths.opened(folder) as handle:
        names = sorted(os.fsencode(name) for name in os.listdir(handle))  # noqa: PTH208 - of a handle
        found = [_entry(os.fsencode(folder) + b"/" + name, handle) for name in names[:MAX_LISTED]]
    return Listing(entries=found, left_out=max(0, len(names) - MAX_LISTED))


def _entry(path: bytes, handle: int | None) -> Entry:
    name = path.rpartition(b"/")[2] if handle is not None else path
    try:
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except OSError:
        status = None  # it went meanwhile
    kinds: dict[int, Kind] = {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "folder",
        stat.S_IFLNK: "link",
    }
    kind: Kind = kinds.get(stat.S_IFMT(status.st_mode), "other") if status else "other"
    return Entry(
        path=paths.listed(path),
        shown=paths.shown(os.fsdecode(name)),
        kind=kind,
        size=status.st_size if status and stat.S_ISREG(status.st_mode) else None,
        changed_at=looking.modified_at(status) if status else None,
        note=holding.note(os.fsdecode(name)) if kind == "folder" else "",
    )


def _observe(arguments: DeleteFile) -> Observation:
    path = paths.inside(paths.raw(arguments.path))
    with paths.opened(path.parent) as folder:
        seen = looking.look(folder, path.name, path)
        return Observation(facts=(("File", str(path)), *seen.facts), fingerprint=seen.fingerprint(folder))


def _execute(receipt: Receipt, arguments: DeleteFile, seen: Observation) -> str:
    path = paths.inside(paths.raw(arguments.path))
    folders, lasting, touched = looking.parts(seen.fingerprint)
    with paths.opened(path.parent) as folder:
        if looking.identity(folder) != folders:
            raise ToolError(f"{paths.shown(path.parent)} became another folder. Nothing was deleted.")
        size = holding.take(
            path,
            folder=folder,
            confirmation_id=receipt.confirmation_id,
            touched=touched,
            is_same=lambda held: looking.is_still(lasting, folder=held, name=holding.FILE, path=path),
            act=lambda held: os.unlink(holding.FILE, dir_fd=held),
            done="deleted",
        )
    return f"Deleted {paths.shown(path)}, {size} bytes."


def _unfinished(confirmation_id: uuid.UUID, arguments: DeleteFile) -> str:
    where = holding.after(confirmation_id, PurePosixPath(os.fsdecode(paths.raw(arguments.path))))
    return f"The file may be held, not deleted, as {paths.shown(where)}."


DELETE_FILE: Guarded[Any] = Guarded(
    name="delete_file",
    title="Delete a file",
    description="Delete one regular file in a folder that is open to the file tools. It cannot be undone.",
    question="Delete this file?",
    arguments=DeleteFile,
    scopes=frozenset({"files:delete"}),
    observe=_observe,
    execute=_execute,
    unfinished=_unfinished,
)


def tools() -> list[BridgeTool]:
    """The file tools, for the server."""
    listing = hub_tool(
        list_files,
        title="List files",
        scopes=["confirm:read"],
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
    return [listing, guard.as_tool(DELETE_FILE), guard.as_tool(moving.MOVE_FILE)]

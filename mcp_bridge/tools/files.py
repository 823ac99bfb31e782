"""The file tools: see what is in the folders that the operator opened, delete a file that a person allowed.

Between the question and the deletion a path can come to mean another file. So the file is known by what
it is (identity, size, time, content), and is taken out of its place by one atomic rename before anything
is deleted: what is then held is looked at once more, and is deleted, or put back.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import os
import stat
import uuid
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, BinaryIO, Literal

from django.conf import settings
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from confirmhub.confirmations.actions import Observation
from confirmhub.confirmations.receipts import Receipt
from mcp_bridge import guard
from mcp_bridge.registry import BridgeTool, hub_tool
from mcp_bridge.threads import in_thread
from mcp_bridge.tools import holding, paths

# Of a larger file only its ends are hashed, and the time of its last change of any kind (ctime) stands
# for what is between them.
MAX_HASHED = 256 * 2**20  # bytes
MAX_END = 64 * 2**20  # bytes
MAX_LISTED = 200

logger = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it is at one moment."""

    status: os.stat_result
    content: str

    @property
    def lasting(self) -> str:
        """What stays the same when the file is moved."""
        parts = (
            self.status.st_dev,
            self.status.st_ino,
            self.status.st_size,
            self.status.st_mtime_ns,
            self.status.st_nlink,  # to delete the last name is another act than to delete one of two
            self.content,
        )
        return hashlib.sha256(repr(parts).encode("ascii")).hexdigest()

    @property
    def fingerprint(self) -> str:
        if self.status.st_size <= MAX_HASHED:
            return self.lasting
        return f"{self.lasting}@{self.status.st_ctime_ns}"


async def list_files(
    path: Annotated[
        str | None,
        Field(description="A folder's absolute path or file:/// URI. Without it: the open folders."),
    ] = None,
) -> Listing:
    """List a folder that is open to the file tools, or the open folders themselves; at most 200 names."""
    return await in_thread(_list, path)


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
        path=paths.written(path),
        shown=paths.shown(os.fsdecode(name)),
        kind=kind,
        size=status.st_size if status and stat.S_ISREG(status.st_mode) else None,
        changed_at=_time(status) if status else None,
        note=holding.note(os.fsdecode(name)) if kind == "folder" else "",
    )


def _time(status: os.stat_result) -> dt.datetime | None:
    """When the content was last changed. Anybody can set it, also to what no calendar holds: None."""
    try:
        return dt.datetime.fromtimestamp(status.st_mtime, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _observe(arguments: DeleteFile) -> Observation:
    path = paths.inside(paths.raw(arguments.path))
    with paths.opened(path.parent) as folder:
        seen = _look(folder, path.name, path)
    changed_at = _time(seen.status)
    facts = [
        ("File", str(path)),
        ("Size", f"{seen.status.st_size} bytes"),
        ("Last changed", f"{changed_at:%Y-%m-%d %H:%M:%S} UTC" if changed_at else "unknown"),
        ("Content", seen.content),
    ]
    if seen.status.st_nlink > 1:
        facts.append(("Other names", f"{seen.status.st_nlink - 1} more; the content stays there"))
    return Observation(facts=tuple(facts), fingerprint=seen.fingerprint)


def _execute(receipt: Receipt, arguments: DeleteFile, seen: Observation) -> str:
    path = paths.inside(paths.raw(arguments.path))
    # A folder of our own, next to the file so that the rename stays on one file system, and closed to
    # others so that nobody touches what is in it.
    place = holding.name(receipt.confirmation_id)
    lasting, _, touched = seen.fingerprint.partition("@")
    with paths.opened(path.parent) as folder:
        try:
            # The rename changes this time itself, so that it is compared right before, not after it.
            now = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_ctime_ns
            if touched and touched != str(now):
                raise ToolError(f"{paths.shown(path)} was changed at the last moment. It was not deleted.")
            os.mkdir(place, mode=0o700, dir_fd=folder)
            with paths.opened(path.parent / place) as held:
                os.rename(path.name, holding.FILE, src_dir_fd=folder, dst_dir_fd=held)
                size = _delete(folder, held, path, place=place, lasting=lasting)
        except OSError as exc:
            raise ToolError(f"{paths.shown(path)} was not deleted: {exc.strerror}.") from exc
        finally:
            _remove_if_empty(folder, place)
    return f"Deleted {paths.shown(path)}, {size} bytes."


def _delete(folder: int, held: int, path: PurePosixPath, *, place: str, lasting: str) -> int:
    try:
        found = _look(held, holding.FILE, path)
        same = found.lasting == lasting
    except ToolError:
        same = False
    if same:
        os.unlink(holding.FILE, dir_fd=held)
        return found.status.st_size
    try:
        _put_back(folder, held, path.name)
        where = "it is back in its place"
    except OSError:
        logger.exception("a file could not be put back")
        where = f"its name was taken meanwhile, so it is kept in the folder {place} beside it"
    raise ToolError(
        f"{paths.shown(path)} became another file at the last moment. It was not deleted; {where}."
    )


def _put_back(folder: int, held: int, name: str) -> None:
    if stat.S_ISDIR(os.stat(holding.FILE, dir_fd=held, follow_symlinks=False).st_mode):
        os.rename(holding.FILE, name, src_dir_fd=held, dst_dir_fd=folder)
        return
    # A link refuses a name that exists; a rename would replace what came there meanwhile.
    os.link(holding.FILE, name, src_dir_fd=held, dst_dir_fd=folder, follow_symlinks=False)
    os.unlink(holding.FILE, dir_fd=held)


def _remove_if_empty(folder: int, place: str) -> None:
    try:
        os.rmdir(place, dir_fd=folder)
    except OSError as exc:
        logger.warning("left %s behind: %s", place, exc.strerror)


def _unfinished(confirmation_id: uuid.UUID, arguments: DeleteFile) -> str:
    where = holding.after(confirmation_id, PurePosixPath(os.fsdecode(paths.raw(arguments.path))))
    return f"The file may be held, not deleted, as {paths.shown(where)}."


def _look(folder: int, name: str, path: PurePosixPath) -> _Seen:
    """The regular file of this name, as it is now.

    Raises:
        ToolError: There is none, or it is a link, a folder or something else.
    """
    try:
        # Looked at before it is opened: opening a device or a pipe can do things.
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(before.st_mode):
            kind = "a link" if stat.S_ISLNK(before.st_mode) else "not a regular file"
            raise ToolError(f"{paths.shown(path)} is {kind}; only regular files can be deleted.")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
            status = os.fstat(file.fileno())
            if not os.path.samestat(before, status):
                raise ToolError(f"{paths.shown(path)} is being replaced right now.")
            content = _hashed(file, size=status.st_size)
            # As it was before and after the reading, or what was read is no one state of it.
            after = os.fstat(file.fileno())
            if (after.st_size, after.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
                raise ToolError(f"{paths.shown(path)} is being written to right now.")
            return _Seen(after, content)
    except FileNotFoundError as exc:
        raise ToolError(f"{paths.shown(path)} does not exist.{holding.beside(folder)}") from exc
    except OSError as exc:
        raise ToolError(f"{paths.shown(path)} cannot be read: {exc.strerror}.") from exc


def _hashed(file: BinaryIO, *, size: int) -> str:
    """What the content is, in words. Bounded, also where the file grows while it is read."""
    whole = size <= MAX_HASHED
    digest = hashlib.sha256()
    for start, length in [(0, size)] if whole else [(0, MAX_END), (size - MAX_END, MAX_END)]:
        file.seek(start)
        left = length
        while left and (chunk := file.read(min(left, 2**20))):
            digest.update(chunk)
            left -= len(chunk)
    if whole:
        return f"SHA-256 {digest.hexdigest()}"
    return f"not hashed whole; SHA-256 of the first and last {MAX_END // 2**20} MiB {digest.hexdigest()}"


DELETE_FILE: guard.Guarded[Any] = guard.Guarded(
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
    return [listing, guard.as_tool(DELETE_FILE)]

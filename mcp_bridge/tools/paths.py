"""Paths as a host writes them, and the walk to a file that follows no link.

A folder is reached from `/` one name at a time, each opened relative to the handle of the one before and
none through a link, so that what is swapped on the way is noticed or does not matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import quote_from_bytes, unquote_to_bytes

from django.conf import settings
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import AfterValidator, Field

from confirmhub import display

MAX_PATH = 4096  # bytes, as Linux has it
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def written(raw: bytes) -> str:
    """A path as text: itself where it is UTF-8, else a file URI (RFC 8089) that carries its bytes."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return uri(raw)


def listed(raw: bytes) -> str:
    """A path for a model to read and to give back: a file URI too where anything in it is hidden."""
    text = written(raw)
    return text if display.text(text) == text else uri(raw)


def uri(raw: bytes) -> str:
    return f"file://{quote_from_bytes(raw)}"


def raw(path: str) -> bytes:
    """The bytes of a path that was written as an absolute path or as a file URI.

    Raises:
        ValueError: It is neither, is not spelled plainly, or is too long.
    """
    found = _encoded(path)
    if found.startswith(b"file://"):
        found = unquote_to_bytes(found.removeprefix(b"file://"))
    if not found.startswith(b"/"):
        raise ValueError("Give an absolute path, or a file:/// URI as list_files writes it.")
    # Each file has one spelling, so that a person reads the place that is meant.
    if (
        b"\0" in found
        or len(found) > MAX_PATH
        or any(name in (b"", b".", b"..") for name in found[1:].split(b"/"))
    ):
        raise ValueError("Write the path without . or .. or double or final slashes, in at most 4096 bytes.")
    return found


def _encoded(path: str) -> bytes:
    try:
        return path.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            "Half a surrogate pair is no character; list_files writes such names as a URI."
        ) from None


def canonical(path: str) -> str:
    """The one spelling of a path that stands for all of them: what is shown, digested and executed.

    Raises:
        ValueError: As `raw`.
    """
    return written(raw(path))


FilePath = Annotated[
    str,
    Field(description="The absolute path of the file, or its file:/// URI, as list_files gives it."),
    AfterValidator(canonical),
]


def refuse_without_roots() -> None:
    """Raise ToolError when the operator has set no folder."""
    if not settings.FILE_ROOTS:
        raise ToolError(
            "No folder is open to the file tools. The operator of confirmhub opens one by setting FILE_ROOTS "
            "to its absolute path."
        )


def inside(path: bytes, *, or_root: bool = False) -> PurePosixPath:
    """The path, if it lies in one of the roots.

    Raises:
        ToolError: It does not, or there are no roots; the text names them.
    """
    refuse_without_roots()
    wanted = PurePosixPath(os.fsdecode(path))
    if any(wanted.is_relative_to(root) and (or_root or wanted != root) for root in _roots()):
        return wanted
    roots = ", ".join(display.text(str(root)) for root in settings.FILE_ROOTS)
    raise ToolError(f"{shown(wanted)} is not inside a folder that is open to the file tools: {roots}.")


def share_a_root(*wanted: PurePosixPath) -> bool:
    """Whether these paths all lie in one of the roots."""
    return any(all(path.is_relative_to(root) for path in wanted) for root in _roots())


def _roots() -> Iterator[PurePosixPath]:
    return map(PurePosixPath, settings.FILE_ROOTS)


def shown(path: PurePosixPath | str) -> str:
    """A path for an answer: on one line, with everything in it visible."""
    return display.short(str(path), 1000)


@contextmanager
def opened(folder: PurePosixPath) -> Iterator[int]:
    """A handle of a folder, reached without following a link anywhere.

    Raises:
        ToolError: A part of the path is missing, is no folder, or is a link.
    """
    handle = os.open("/", _FOLDER)
    try:
        for name in folder.parts[1:]:
            try:
                deeper = os.open(name, _FOLDER, dir_fd=handle)
            except OSError as exc:
                raise ToolError(
                    f"{shown(folder)} cannot be reached: {shown(name)} is missing, is no folder or is a link."
                ) from exc
            os.close(handle)
            handle = deeper
        yield handle
    finally:
        os.close(handle)


@contextmanager
def within(folder: int, name: str) -> Iterator[int]:
    """A handle of the folder of this name in an open folder.

    Raises:
        OSError: It is missing, is no folder, or is a link.
    """
    handle = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)

"""What a process of ours does when a setting is to blame: it says so in one line, and ends.

`python -m confirmhub.ops.misconfigured` reads all settings and does nothing else.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from django.core.exceptions import ImproperlyConfigured

from confirmhub.ops.checked import MISCONFIGURED


@contextmanager
def telling() -> Iterator[None]:
    """End this process where a setting is to blame, with what to do as the last line that it writes."""
    try:
        yield
    except ImproperlyConfigured as exc:
        if exc.__cause__:  # a module's own failure: its author needs the whole of it
            traceback.print_exception(exc.__cause__)
        sys.stderr.write(f"{' '.join(str(exc).split())}\n")
        sys.exit(MISCONFIGURED)


def load_tools() -> None:
    """Load the modules of guarded tools, with an answer to each way in which that can fail.

    Raises:
        ImproperlyConfigured: One of them brings no tools.
    """
    from django.conf import settings  # noqa: PLC0415 - reads them, which `telling` must see

    from mcp_bridge.registry import BridgeTool  # noqa: PLC0415 - the same

    for name in settings.GUARDED_TOOLS:
        try:
            brought = import_module(name).tools()
        except Exception as exc:  # it is somebody else's code, and may raise anything
            raise ImproperlyConfigured(f"GUARDED_TOOLS: {_advice(name, exc)}") from exc
        if not isinstance(brought, list) or not all(isinstance(each, BridgeTool) for each in brought):
            raise ImproperlyConfigured(
                f"GUARDED_TOOLS: {name}.tools() must return a list of what as_tool makes of each tool."
            )


def _advice(name: str, exc: Exception) -> str:
    if isinstance(exc, ModuleNotFoundError) and exc.name and f"{name}.".startswith(f"{exc.name}."):
        return (
            f"there is no module {name}: correct the name, install its package, or put its folder on"
            " PYTHONPATH."
        )
    if isinstance(exc, AttributeError) and exc.name == "tools" and exc.obj is sys.modules.get(name):
        return f"{name} has no tools(): write one that returns its tools, as docs/tool-authors.md shows."
    if isinstance(exc, SyntaxError):
        what, file, line = exc.msg, exc.filename, exc.lineno
    else:
        # Where the author wrote it, though what they called raised it.
        calls = list(traceback.walk_tb(exc.__traceback__))
        package = name.partition(".")[0]
        theirs = [call for call in calls if call[0].f_globals.get("__name__", "").split(".")[0] == package]
        frame, line = (theirs or calls)[-1]
        file = frame.f_code.co_filename
        what = str(exc) if isinstance(exc, ImproperlyConfigured) else f"{type(exc).__name__}: {exc}"
    return f"{name} does not load: {what} ({file}, line {line}): correct it, or leave it out."


if __name__ == "__main__":
    with telling():
        import_module("confirmhub.settings")

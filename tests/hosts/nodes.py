"""Programs for Node that use the packages of `node/package-lock.json`: the hosts, and official tools."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests import npm

HERE = Path(__file__).parent


def packages() -> Path:
    """The folder that has `node_modules`, installed at the first call."""
    return npm.installed(HERE / "node", name="hosts-node")


def node() -> str | Path:
    """A Node that is new enough for all of them."""
    return npm.find_node()[0]


def program(source: Path) -> list[str | Path]:
    """The command of a program of ours. It can import the packages, and the modules that lie beside it."""
    # Node looks for packages from where the program lies.
    target = packages() / source.parent.name
    target.mkdir(exist_ok=True)
    for module in source.parent.glob("*.mjs"):
        _copy(module, target / module.name)
    return [node(), target / source.name]


def tool(name: str) -> list[str | Path]:
    """The command of a program that a package brings, by its name in `node_modules/.bin`."""
    return [node(), (packages() / "node_modules/.bin" / name).resolve()]


def _copy(source: Path, target: Path) -> None:
    """Copy it whole or not at all: another process may be starting the same program."""
    handle, name = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(handle, "wb") as copy:
        copy.write(source.read_bytes())
    Path(name).rename(target)

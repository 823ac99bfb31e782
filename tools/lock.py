# ruff: noqa: S603, T201 - a script: it stands alone, runs uv, and prints
"""Write the pinned requirements from pyproject.toml.

`python tools/lock.py` resolves again with uv and writes `requirements.txt` (the product),
`tests/requirements.txt` (the product and its test tools) and `tools/uv.txt` (uv itself, for
`./hub`). `--upgrade` takes the newest versions allowed; `--check` only says, without a
network, whether the files belong to the pyproject.toml beside them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = ROOT / "pyproject.toml"
PRODUCT = ROOT / "requirements.txt"
TESTS = ROOT / "tests" / "requirements.txt"
UV = ROOT / "tools" / "uv.txt"

# A requirement in one of the arrays of pyproject.toml, with the reason behind it.
ENTRY = re.compile(r'^\s*"(?P<requirement>[^"]+)",?\s*(?:#\s*(?P<reason>.+))?$')
NAME = re.compile(r"^[A-Za-z0-9._-]+")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the pinned requirements.")
    parser.add_argument("--upgrade", action="store_true", help="take newer versions")
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    options = parser.parse_args()
    if options.check:
        stale = [path for path in (PRODUCT, TESTS) if fingerprint() not in path.read_text("utf-8")]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is older than pyproject.toml: run tools/lock.py")
        return 1 if stale else 0
    uv = shutil.which("uv") or shutil.which("uv", path=ROOT / ".tools" / "bin")
    if uv is None:
        print("uv is needed to resolve: run ./hub once, or install it", file=sys.stderr)
        return 1
    flags = ["--upgrade"] if options.upgrade else []
    write(PRODUCT, resolve(uv, ["pyproject.toml"], PRODUCT, flags))
    # The tests run on what the product ships: its pins bind theirs.
    given = ["pyproject.toml", "--group", "test", "--constraints", "requirements.txt"]
    write(TESTS, resolve(uv, given, TESTS, flags))
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "uv.in")
        wanted.write_text("uv\n", encoding="utf-8")
        pins = resolve(uv, [str(wanted)], UV, flags)
    UV.write_text("# Written by tools/lock.py; `./hub` installs uv from this.\n" + pins, "utf-8")
    return 0


def resolve(uv: str, given: list[str], target: Path, flags: list[str]) -> str:
    """Return pins with hashes of what `given` asks for, for every platform."""
    with tempfile.TemporaryDirectory() as folder:
        # uv keeps the versions that the output file already holds, unless told to upgrade.
        output = Path(folder, "pins.txt")
        if target.exists():
            shutil.copyfile(target, output)
        subprocess.run(
            [
                *(uv, "pip", "compile", *given, "--output-file", str(output), "--quiet", "--universal"),
                *("--generate-hashes", "--only-binary", ":all:", "--python-version", "3.12"),
                *("--no-emit-index-url", "--no-header", "--no-annotate", "--no-config", *flags),
            ],
            cwd=ROOT,
            env=os.environ | {"UV_NO_PROGRESS": "1"},
            check=True,
        )
        return output.read_text("utf-8")


def write(target: Path, pins: str) -> None:
    """Write `pins` to `target`, each direct dependency with its reason above it."""
    known = reasons()
    lines = [f"# Written by tools/lock.py from pyproject.toml {fingerprint()}; do not edit.", ""]
    for line in pins.splitlines():
        if line.startswith("#"):
            continue
        if (name := NAME.match(line)) and (reason := known.get(normal(name.group()))):
            lines.append(f"# {reason}")
        lines.append(line)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def reasons() -> dict[str, str]:
    """Map each direct dependency to its comment in pyproject.toml."""
    found: dict[str, str] = {}
    above = ""
    for line in PYPROJECT.read_text("utf-8").splitlines():
        if entry := ENTRY.match(line):
            name = NAME.match(entry["requirement"])
            if name and (reason := entry["reason"] or above):
                found[normal(name.group())] = reason
            above = ""
        else:
            stripped = line.strip()
            above = stripped.removeprefix("#").strip() if stripped.startswith("#") else ""
    return found


def normal(name: str) -> str:
    """Return a distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def fingerprint() -> str:
    """Return twelve digits that change with what pyproject.toml asks for."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))
    asked = [
        project["project"]["requires-python"],
        project["project"]["dependencies"],
        project["dependency-groups"],
    ]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main())

"""The pinned requirements belong to the pyproject.toml beside them."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


def test_the_pins_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "lock.py", "--check"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_tests_run_on_the_products_pins() -> None:
    product = set(PIN.findall((ROOT / "requirements.txt").read_text()))
    tests = set(PIN.findall((ROOT / "tests" / "requirements.txt").read_text()))

    assert len(product) > 50
    assert product <= tests


def test_every_direct_dependency_says_why_it_is_there() -> None:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    reasons = {PIN.match(below)[1]: above for above, below in itertools.pairwise(lines) if PIN.match(below)}

    asked = re.findall(r'^    "([a-z0-9-]+)[^"]*",? *(?:#.*)?$', _dependencies(), re.MULTILINE)

    assert len(asked) > 10
    assert [name for name in asked if not reasons[name].startswith("# ")] == []


def _dependencies() -> str:
    text = (ROOT / "pyproject.toml").read_text()
    return text.partition("dependencies = [")[2].partition("\n]\n")[0]

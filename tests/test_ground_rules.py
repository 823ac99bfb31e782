"""The ground rules of the house as checks: what the tools hold, and what no tool does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import invariants

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
MOST_LINES = 400
GENERATED = ("migrations", "tables")


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"


def test_ruff_finds_nothing() -> None:
    run(str(BIN / "ruff"), "check", "--quiet", ".")


def test_the_format_is_ruffs() -> None:
    run(str(BIN / "ruff"), "format", "--check", "--quiet", ".")


def test_mypy_finds_nothing() -> None:
    run(str(BIN / "mypy"), "--no-error-summary")


def test_imports_go_down_the_layers() -> None:
    run(str(BIN / "lint-imports"), "--no-cache")


def test_no_migration_is_missing() -> None:
    run(sys.executable, "manage.py", "makemigrations", "--check", "--dry-run")


def test_templates_are_formatted() -> None:
    files = [str(path) for path in sorted((ROOT / "templates").rglob("*.html"))]
    run(str(BIN / "djade"), "--target-version", "6.1", "--check", *files)


def ours(suffix: str) -> list[Path]:
    folders = ("confirmhub", "confirmhub_client", "mcp_bridge", "tests", "tools")
    found = [path for folder in folders for path in (ROOT / folder).rglob(f"*{suffix}")]
    return [path for path in found if not {"node_modules", "__pycache__"} & set(path.parts)]


def test_no_file_that_a_person_wrote_is_over_400_lines() -> None:
    written = [path for path in ours(".py") if not set(GENERATED) & set(path.parts)]

    long = {str(path.relative_to(ROOT)): lines for path in written if (lines := count(path)) > MOST_LINES}

    assert written
    assert long == {}


def count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    "pattern", [r"\|\s*safe\b", r"\bmark_safe\(", r"{%\s*autoescape\s+off", r"\bstyle=\"", r"<script>"]
)
def test_no_template_or_page_trusts_a_value(pattern: str) -> None:
    code = [path for folder in ("confirmhub", "mcp_bridge") for path in (ROOT / folder).rglob("*.py")]
    # Mail has no stylesheet but what stands in it.
    pages = [path for path in (ROOT / "templates").rglob("*.html") if path.parent.name != "notifications"]

    found = [str(path) for path in code + pages if re.search(pattern, path.read_text(encoding="utf-8"))]

    assert code
    assert pages

    assert found == []


def test_no_address_of_a_registry_stands_in_a_lock() -> None:
    locks = [ROOT / "requirements.txt", ROOT / "tests/requirements.txt", *ours("package-lock.json")]

    # npm writes where a package asks for money, as its "url".
    address = re.compile(r"(?<!\"url\": \")https?://")
    assert [str(path) for path in locks if address.search(path.read_text())] == []


def test_every_promise_is_proven_by_a_test() -> None:
    proven = {
        name
        for path in ours(".py")
        if path.name.startswith("test_")
        for name in re.findall(r"@proves\(\"([^\"]+)\"\)", path.read_text(encoding="utf-8"))
    }

    assert proven == set(invariants.INVARIANTS)

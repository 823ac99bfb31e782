"""What docs/api.md prints works as printed, and its table has every refusal."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from confirmhub.api.document import document
from confirmhub.api.errors import UNREAD
from confirmhub.confirmations.models import Confirmation
from confirmhub.oauth import services
from tests.api.serving import AUDIENCE
from tests.factories import decide

TEXT = (Path(__file__).resolve().parents[2] / "docs/api.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
END = "-- the block is over --"


class Shell:
    """A shell that runs block after block, and stops at the first command that fails."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            ["/bin/sh", "-eu"],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, block: str) -> str:
        """What the block printed."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{block}\necho '{END}'\n")
        self.process.stdin.flush()
        printed = []
        for line in self.process.stdout:
            if (last := line.removesuffix(f"{END}\n")) != line:
                return "".join([*printed, last])
            printed.append(line)
        raise AssertionError("".join(printed))


@pytest.fixture
def shell(url: str, tmp_path: Path) -> Iterator[Shell]:
    made, secret = services.create(name="Payments", audience=AUDIENCE)
    shell = Shell(tmp_path, CLIENT_ID=made.client_id, CLIENT_SECRET=secret)
    try:
        yield shell
    finally:
        shell.process.kill()
        shell.process.communicate()


def test_the_examples_work_as_printed(shell: Shell, url: str, alice: User, tmp_path: Path) -> None:
    token, ask, wait, redeem, report, receipt, listed, cancel = BLOCKS

    shell.run(token.replace("http://localhost:8000", url))
    shell.run(ask)
    decide(Confirmation.objects.get(), alice)
    assert shell.run(wait) == "approved\n"
    redeemed = shell.run(redeem)
    assert '"replayed":false' in redeemed
    assert redeemed.endswith("}\n")
    assert "'result': 'succeeded'" in shell.run(report)
    shell.run(receipt)
    assert shell.run(listed) == "None\n"
    assert shell.run(cancel) == "cancelled\n"

    call_command("verify_receipt", str(tmp_path / "receipt.jws"), "--keys", str(tmp_path / "keys.json"))


def examples(told: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for methods in told["paths"].values():
        for route in methods.values():
            for answer in route["responses"].values():
                problems = answer.get("content", {}).get("application/problem+json", {})
                for example in problems.get("examples", {}).values():
                    problem = example["value"]
                    yield problem["type"].removeprefix("urn:confirmhub:"), problem["status"]


def test_the_table_has_every_refusal() -> None:
    listed = {
        (name, int(status)) for name, status in re.findall(r"^\| `(\w+)` \| (\d+) \|", TEXT, re.MULTILINE)
    }
    everywhere = {
        ("method_not_allowed", 405),
        ("no_such_path", 404),
        ("error", 500),
        ("cut_off", 503),
        ("no_address", 400),
        *((code, int(at)) for at, code in UNREAD.items()),
    }

    assert listed == set(examples(document())) | everywhere


def test_the_printed_refusal_is_the_servers(url: str) -> None:
    [printed] = re.findall(r'"title": "([^"]+)", "status": 409', TEXT)
    assert printed in str(document())

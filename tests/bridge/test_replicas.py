"""Several processes behind one address: a host may land on another one at each request."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db import connection

from tests.bridge.hosts import call_message, decide_at, make_token, post

NAME = "localhost:1"  # what the balancer is called; the replicas' own ports do not matter
URL = {"url": {}}
OLD, NEW = "the-old-key-" * 3, "the-new-key-" * 3


@contextlib.contextmanager
def replica(*, keys: list[str], root: Path) -> Iterator[str]:
    """A process that serves; its address."""
    database = connection.settings_dict
    environment = os.environ | {
        "DATABASE_URL": f"postgresql://{database['USER']}@/{database['NAME']}?host={database['HOST']}",
        "PUBLIC_URL": f"http://{NAME}",
        "SEALING_KEYS": "\n".join(keys),
        "FILE_ROOTS": str(root),
    }
    command = [sys.executable, "-m", "uvicorn", "confirmhub.asgi:application", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            found = (re.search(r"running on (http://[\d.:]+)", line) for line in process.stderr)
            yield next(match[1] for match in found if match)
        finally:
            process.kill()


@pytest.mark.usefixtures("transactional_db")
def test_a_state_opens_on_another_replica_and_through_a_change_of_keys(
    root: Path, file: Path, alice: User
) -> None:
    token = make_token(alice, resource=f"http://{NAME}/mcp")

    def at(address: str, **more: Any) -> httpx2.Response:
        message = call_message("delete_file", {"path": str(file)}, elicitation=URL, **more)
        return post(address, message, token=token, headers={"host": NAME})

    with contextlib.ExitStack() as stack:
        before, during, after = (
            stack.enter_context(replica(keys=keys, root=root)) for keys in ([OLD, NEW], [NEW, OLD], [NEW])
        )
        result = at(before).json()["result"]
        state = result["requestState"]
        decide_at(result["inputRequests"]["page"]["params"]["url"])
        refused = at(after, requestState=state)  # the old key has left there
        accepted = at(during, requestState=state)
        again = at(before, requestState=state)

    assert refused.json()["error"]["data"] == {"reason": "invalid_request_state"}
    assert accepted.json()["result"]["structuredContent"]["status"] == "done"
    assert "was already redeemed" in again.json()["result"]["content"][0]["text"]
    assert not file.exists()

"""Whatever fits the OpenAPI document, and much that does not, gets an answer that the document foretells."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoDbBlocker

from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import throttle
from tests.bridge.hosts import make_token
from tests.bridge.serving import served
from tests.factories import make_approved, redeem

PROGRAM = Path(sys.executable).parent / "schemathesis"
SHORT, LONG = 4, 200  # examples of each route

# `arguments` take any JSON that people can be shown whole, which no schema says: see `confirmations.actions`.
UNSAID = "positive_data_acceptance"


@pytest.fixture
def url(
    transactional_db: None, django_db_blocker: DjangoDbBlocker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    limit = throttle.Limit(what=throttle.ASKING.what, count=1_000_000, within=throttle.ASKING.within)
    monkeypatch.setattr(throttle, "ASKING", limit)
    with django_db_blocker.unblock(), served() as url:
        yield url


def test_the_server_does_what_the_document_says(
    url: str, agent: Principal, alice: User, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    token = make_token(alice, resource=f"{url}/mcp", scope="confirm:admin", within=timedelta(hours=3))
    spent = make_approved(agent, alice)
    redeem(spent, agent)
    examples = LONG if request.config.getoption("--long") else SHORT
    config = tmp_path / "schemathesis.toml"
    config.write_text(f'[parameters]\n"path.confirmation_id" = "{spent.id}"\n')
    command = [
        *(PROGRAM, "--config-file", config, "run", f"{url}/api/v1/openapi.json"),
        *("--header", f"Authorization: Bearer {token}"),
        *("--phases", "examples,coverage,fuzzing"),
        *("--checks", "all", "--exclude-checks", UNSAID),
        *("--mode", "all", "--max-examples", str(examples), "--generation-deterministic"),
        *("--request-timeout", "70", "--no-color"),
    ]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=3_000, check=False)

    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]

"""Who may call is looked up again where a call has waited for a person: much can change meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connections
from django.utils import timezone

from confirmhub.confirmations.models import Confirmation
from confirmhub.oauth.models import AccessToken, Client
from tests.bridge.hosts import call_message, decide_at, post
from tests.bridge.test_patience import Hold, waiting_calls
from tests.factories import kinds_of_events


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Hold:
    return Hold(monkeypatch)


def revoke_the_token() -> None:
    AccessToken.objects.all().delete()


def block_the_program() -> None:
    Client.objects.update(blocked=True)


def narrow_the_scope() -> None:
    AccessToken.objects.update(scope="confirm:read")


def let_the_token_expire() -> None:
    AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1))


def after(hold: Hold, page: str, change: Callable[[], object]) -> threading.Thread:
    """Change that while a call waits, and then say yes."""

    def run() -> None:
        assert hold.begun.wait(timeout=20)
        try:
            change()
            decide_at(page)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


CHANGES = [revoke_the_token, block_the_program, narrow_the_scope, let_the_token_expire]


@pytest.mark.parametrize("call", ["round", "again", "redeem"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_call_that_waited_does_not_act_with_a_token_that_is_good_no_more(  # noqa: PLR0917 - all are needed
    url: str, token: str, file: Path, hold: Hold, change: Callable[[], object], call: str
) -> None:
    first = post(
        url, call_message("delete_file", {"path": str(file)}, elicitation={"url": {}}), token=token
    ).json()["result"]
    others = after(hold, first["inputRequests"]["page"]["params"]["url"], change)

    result = post(url, waiting_calls(file, first)[call], token=token).json()["result"]
    others.join()

    assert result["isError"]
    assert "The access token is good for this no more" in result["content"][0]["text"]
    assert file.exists()
    assert kinds_of_events(Confirmation.objects.get()) == ["requested", "approve"]

"""What the client says when nobody knows what the hub has done, or the hub what the block has."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest

from confirmhub_client import AsyncHub, Hub, Refused, Unreachable, Unreported, attempts, steps
from confirmhub_client.steps import Steps
from confirmhub_client.values import Receipt
from tests.client.test_hub import LOST, answering

AWAY = (503, {}, b'{"type": "urn:confirmhub:unavailable", "title": "Away."}')
AT_WORK = (503, {}, b'{"type": "urn:confirmhub:busy", "title": "Busy."}')
LIMITED = (429, {}, b'{"type": "urn:confirmhub:too_many_open", "title": "Too many."}')
NO_JSON = (502, {}, b"")


@pytest.mark.parametrize(
    ("first", "rest", "expected"),
    [
        (AWAY, AWAY, Unreachable),
        (AWAY, AT_WORK, Unreachable),
        (NO_JSON, AT_WORK, Unreachable),
        (LOST, AT_WORK, Unreachable),
        (AT_WORK, AT_WORK, Refused),
        (LIMITED, AT_WORK, Refused),
        (AT_WORK, LIMITED, Refused),
    ],
)
def test_what_may_have_been_done_is_not_called_refused(
    first: tuple[Any, ...], rest: tuple[Any, ...], expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "PAUSE", 0.001)
    answers = [first, *[rest] * (attempts.ATTEMPTS - 1)]
    with answering(*answers) as (url, asked), Hub(url, token="t") as hub, pytest.raises(expected):
        hub.ask("a", {})

    assert len(asked) == attempts.ATTEMPTS


def spent(monkeypatch: pytest.MonkeyPatch) -> Receipt:
    """A confirmation whose yes is spent already, as far as the client can see."""
    receipt = Receipt("i", "00" * 32, "k", dt.datetime.now(dt.UTC), replayed=False, result=None, detail="")

    def confirm(*_: object, **__: object) -> Steps[Receipt]:
        return receipt
        yield

    monkeypatch.setattr(steps, "confirm", confirm)
    return receipt


def test_a_block_that_ran_and_could_not_be_reported_does_not_look_as_if_it_had_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "PAUSE", 0.001)
    ran = []

    async def run(url: str) -> None:
        async with AsyncHub(url, token="t") as hub, hub.confirm("a", {}):
            ran.append("async")

    with answering() as (url, _), Hub(url, token="t") as hub:
        receipt = spent(monkeypatch)
        with pytest.raises(Unreported) as sync, hub.confirm("a", {}):
            ran.append("sync")
        with pytest.raises(Unreported) as async_:
            asyncio.run(run(url))

    assert ran == ["sync", "async"]
    assert sync.value.receipt is async_.value.receipt is receipt
    assert isinstance(sync.value.__cause__, Unreachable)


def test_a_block_that_raises_raises_on_although_it_could_not_be_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "PAUSE", 0.001)

    async def run(url: str) -> None:
        async with AsyncHub(url, token="t") as hub, hub.confirm("a", {}):
            raise LookupError

    with answering() as (url, _), Hub(url, token="t") as hub:
        spent(monkeypatch)
        with pytest.raises(LookupError) as sync, hub.confirm("a", {}):
            raise LookupError
        with pytest.raises(LookupError) as async_:
            asyncio.run(run(url))

    for raised in (sync, async_):
        assert "could not be reported" in raised.value.__notes__[0]

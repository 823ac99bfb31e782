"""Beat, whose ticks are lines of the outbox."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

from confirmhub.celery import app
from confirmhub.confirmations.models import Chore
from confirmhub.notifications import scheduler
from confirmhub.notifications.tasks import CHORES, EXPIRE_DUE

ROOT = Path(__file__).parents[2]


class Scheduler(scheduler.OutboxScheduler):
    """Counts its pulses."""

    pulses = 0

    def pulse(self) -> None:
        self.pulses += 1


@pytest.mark.django_db(transaction=True)
def test_two_beats_write_one_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(time=lambda: 95.0))
    first, second = Scheduler(app=app), Scheduler(app=app)

    for _ in app.conf.beat_schedule:  # one entry a tick
        first.tick()
        second.tick()

    slots = dict(Chore.objects.values_list("task", "slot"))
    assert slots == {entry["task"]: int(95 // entry["schedule"]) for entry in app.conf.beat_schedule.values()}
    assert slots[EXPIRE_DUE] == 3
    assert Chore.objects.count() == len(slots)


@pytest.mark.django_db(transaction=True)
def test_a_beat_ticks_at_its_start_and_then_waits_for_the_next_slot() -> None:
    beat = Scheduler(app=app)

    entries = len(app.conf.beat_schedule)

    waits = [beat.tick() for _ in range(entries + 2)]

    assert waits[:entries] == [0] * entries
    assert 0 < waits[entries] <= beat.max_interval
    assert Chore.objects.count() == entries
    assert beat.pulses == entries + 2


def test_every_periodic_task_is_one_that_the_relay_knows() -> None:
    app.loader.import_default_modules()

    assert {entry["task"] for entry in app.conf.beat_schedule.values()} == CHORES
    assert set(app.tasks) >= CHORES


def test_nothing_but_the_relay_gives_work_to_the_broker() -> None:
    """With the embedded broker, what any other process sends is lost without a word."""
    forbidden = {"delay", "apply_async", "delay_on_commit", "apply_async_on_commit", "send_task"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in ("confirmhub", "mcp_bridge")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in forbidden
    ]

    assert [place for place in found if not place.startswith("confirmhub/celery.py")] == []

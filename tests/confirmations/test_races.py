"""At the same moment, from other processes and threads: exactly one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction

from confirmhub.confirmations import errors, ledger
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status, Verdict
from tests.factories import AUDIENCE, decide, kinds_of_events, make_approved, make_pending, redeem
from tests.invariants import proves

pytestmark = pytest.mark.django_db(transaction=True)


def database_url() -> str:
    """The URL of the database that this test runs in."""
    made = connection.settings_dict
    at = f"{made['USER']}:{quote(made['PASSWORD'])}@" if made["PASSWORD"] else f"{made['USER']}@"
    return f"postgresql://{at}/{made['NAME']}?host={quote(made['HOST'], safe='')}"


@proves("redeem:once")
def test_of_sixteen_processes_that_redeem_at_once_one_gets_a_receipt(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.confirmations.racing",
            str(approved.id),
            agent.client_id,
            agent.subject,
        ],
        env=os.environ | {"DATABASE_URL": database_url()},
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
    )

    assert sorted(run.stdout.split()) == ["already_redeemed"] * 15 + ["receipt"], run.stderr
    assert kinds_of_events(approved)[:3] == ["requested", "approve", "redeemed"]
    assert kinds_of_events(approved).count("redeemed") == 1


@proves("redeem:once")
def test_of_many_threads_that_redeem_at_once_one_gets_a_receipt(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    results = at_once(8, lambda _: redeem(approved, agent))

    assert sorted(type(result).__name__ for result in results) == ["AlreadyRedeemed"] * 7 + ["Receipt"]


def test_two_that_lost_their_answer_get_one_receipt(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)

    results = at_once(8, lambda _: redeem(approved, agent, key="the-same"))

    assert sorted(result.replayed for result in results) == [False] + [True] * 7
    assert kinds_of_events(approved).count("redeemed") == 1


def test_of_a_yes_and_a_no_at_once_one_counts(agent: Principal, alice: User) -> None:
    pending = make_pending(agent)
    verdicts = [Verdict.APPROVE, Verdict.DENY] * 4

    results = at_once(8, lambda number: decide(pending, alice, verdicts[number]))

    pending.refresh_from_db()
    decision = pending.decisions.get()
    assert (decision.verdict, pending.status) in (("approve", Status.APPROVED), ("deny", Status.DENIED))
    assert sum(isinstance(result, Confirmation) for result in results) == 4  # the same verdict, repeated
    assert sum(isinstance(result, errors.AlreadyDecided) for result in results) == 4


def test_a_move_that_waits_too_long_for_its_row_is_refused(agent: Principal, alice: User) -> None:
    approved = make_approved(agent, alice)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Confirmation.objects.select_for_update().get(id=approved.id)
            held.set()
            done.wait(timeout=20)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(timeout=10)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '50ms'")
        with pytest.raises(errors.Busy):
            redeem(approved, agent)
    finally:
        done.set()
        holder.join()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")

    assert redeem(approved, agent).replayed is False


def test_a_move_waits_for_no_move_of_another_row(agent: Principal, alice: User) -> None:
    """The log is chained for each confirmation by itself: there is no end of one chain to queue for."""
    other = Action(audience=AUDIENCE, name="other", arguments={})
    first, second = make_approved(agent, alice), make_approved(agent, alice, action=other)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            ledger.revoke(confirmation_id=first.id, revoker=agent, reason="")
            held.set()
            done.wait(timeout=20)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(timeout=10)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '50ms'")
        assert not redeem(second, agent, action=other).replayed
    finally:
        done.set()
        holder.join()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def test_a_database_that_is_away_is_no_refusal(agent: Principal, alice: User) -> None:
    """What is refused has changed nothing; of a connection lost on the way nobody knows."""
    approved = make_approved(agent, alice)
    with connection.cursor() as cursor, pytest.raises(OperationalError):
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(OperationalError):
        redeem(approved, agent)

    connection.close()
    assert redeem(approved, agent).replayed is False


def at_once(count: int, do: Callable[[int], object]) -> list[object]:
    """What each of so many threads got, all of them let go at the same moment."""
    start = threading.Barrier(count, timeout=20)
    results: list[object] = []

    def race(number: int) -> None:
        try:
            connection.ensure_connection()
            start.wait()
            results.append(do(number))
        except errors.ConfirmationError as exc:
            results.append(exc)
        finally:
            connection.close()

    threads = [threading.Thread(target=race, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(results) == count
    return results

"""A database that falls silent, and resets nothing: nobody hangs, and nothing is spent twice."""

from __future__ import annotations

import asyncio
import ctypes
import datetime as dt
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio.to_thread
import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from confirmhub import env
from confirmhub.confirmations import batches, dsn, errors, redeemer, waiting
from confirmhub.confirmations.lookups import Reader, Together
from confirmhub.confirmations.models import Event, Outcome
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result, Status
from confirmhub.database.base import DatabaseWrapper, patience
from tests.confirmations.test_waiting import settled
from tests.factories import TRANSFER, decide, make_approved, make_pending
from tests.invariants import proves

pytestmark = pytest.mark.django_db(transaction=True)
SO_ATTACH_FILTER = 26  # of Linux, for which the standard library has no name
SECONDS = 0.5  # that the server waits for the database here


class Link:
    """A way to Postgres over TCP whose open connections can fall silent, in one direction or in both."""

    def __init__(self) -> None:
        self.opened = 0
        self.refuses = False  # new connections are taken and never served
        self._hushed: list[set[str]] = []
        self._wires: list[socket.socket] = []
        self._held = asyncio.Event()  # never set: what was hushed stays so

    def hush(self, *directions: str) -> None:
        for hushed in self._hushed:
            hushed.update(directions)

    def lose_packets(self) -> None:
        """From here on no packet reaches this end of the open connections, so that none is acknowledged."""
        keep_nothing = ctypes.create_string_buffer(
            struct.pack("HBBI", 0x06, 0, 0, 0)
        )  # one instruction: drop
        for wire in self._wires:
            program = struct.pack("HP", 1, ctypes.addressof(keep_nothing))
            wire.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        hushed: set[str] = {"there", "back"} if self.refuses else set()
        self._hushed.append(hushed)
        self._wires.append(writer.get_extra_info("socket"))
        known = conninfo_to_dict(real())
        path = Path(str(known["host"]), f".s.PGSQL.{known.get('port', 5432)}")
        ends = [writer]
        try:
            there, there_writer = await asyncio.open_unix_connection(path)
            ends.append(there_writer)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass(reader, there_writer, hushed, "there"))
                tasks.create_task(self._pass(there, writer, hushed, "back"))
        finally:
            for end in ends:
                end.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hushed: set[str], direction: str
    ) -> None:
        while data := await reader.read(65_536):
            if direction in hushed:
                await self._held.wait()
            writer.write(data)
        writer.close()


real = dsn.conninfo


@asynccontextmanager
async def linked(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Link]:
    """All that the event loop asks of the database goes over the link. The ledger, in threads, does not."""
    link = Link()
    serving: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(link.serve(reader, writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(dsn, "conninfo", lambda: make_conninfo(real(), host="127.0.0.1", port=port))
    monkeypatch.setattr(dsn, "PATIENCE", SECONDS)
    monkeypatch.setattr(batches, "RECONNECT", 0.01)
    monkeypatch.setattr(waiting, "RECONNECT", 0.01)
    try:
        yield link
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def run(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 20))


async def one(reader: Reader) -> int:
    ((found,),) = await reader.rows("SELECT %s::int", [7])
    return int(found)


@pytest.mark.parametrize("silent", ["there", "back"])
def test_look_ups_into_the_silence_are_told_to_come_again_and_the_next_goes_elsewhere(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with linked(monkeypatch) as link:
            reader = Reader(name="silence")
            assert await one(reader) == 7
            link.hush(silent)
            with pytest.raises(errors.Unavailable):
                await one(reader)
            assert await one(reader) == 7
            assert link.opened == 2
            await reader.close()

    run(scenario)


def test_all_who_look_up_together_in_the_silence_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with linked(monkeypatch) as link:
            reader = Reader(name="silence")

            async def find(keys: list[int]) -> dict[int, int]:
                return dict.fromkeys(keys, await one(reader))

            together = Together(find)
            assert await together.find(1) == 7
            link.hush("back")
            told = await asyncio.gather(*(together.find(key) for key in range(9)), return_exceptions=True)
            assert {type(each) for each in told} == {errors.Unavailable}
            assert await together.find(1) == 7
            await together.close()
            await reader.close()

    run(scenario)


def test_who_only_waits_for_a_turn_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with linked(monkeypatch) as link:
            link.refuses = True
            reader = Reader(name="silence")
            told = await asyncio.gather(*(one(reader) for _ in range(20)), return_exceptions=True)
            assert {type(each) for each in told} == {errors.Unavailable}
            assert link.opened <= 2  # they are told of the same silence, and not one after the other
            link.refuses = False
            assert await one(reader) == 7
            await reader.close()

    run(scenario)


@proves("redeem:once")
@pytest.mark.parametrize("silent", ["there", "back"])
def test_what_was_sent_into_the_silence_is_spent_once_and_its_sender_has_the_receipt(
    silent: str, agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redeemer, "CONNECTIONS", 1)  # the same has prepared the statement and falls silent
    approved = [make_approved(agent, alice, action=replace(TRANSFER, name=f"a.{each}")) for each in range(6)]

    async def ask(number: int) -> tuple[str, bool]:
        receipt = await redeemer.redeem(
            confirmation_id=approved[number].id,
            requester=agent,
            action=replace(TRANSFER, name=approved[number].action),
            redemption_key=f"key-{number}",
        )
        assert receipt.confirmation_id == approved[number].id
        return receipt.redemption_key, receipt.replayed

    async def scenario() -> None:
        async with linked(monkeypatch) as link, redeemer.running():
            assert await ask(0) == ("key-0", False)
            link.hush(silent)
            told = await asyncio.gather(*(ask(number) for number in range(1, 5)))
            # Where the answer alone was lost, Postgres had committed, and the same key has that receipt.
            assert told == [(f"key-{number}", silent == "back") for number in range(1, 5)]
            with pytest.raises(errors.AlreadyRedeemed):
                await redeemer.redeem(
                    confirmation_id=approved[1].id,
                    requester=agent,
                    action=replace(TRANSFER, name=approved[1].action),
                    redemption_key="another",
                )
            assert await ask(5) == ("key-5", False)

    run(scenario)
    assert Event.objects.filter(kind="redeemed").count() == 6


def test_a_report_into_the_silence_is_sent_to_the_ledger(
    agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved = make_approved(agent, alice)

    async def scenario() -> None:
        async with linked(monkeypatch) as link, redeemer.running():
            receipt = await redeemer.redeem(
                confirmation_id=approved.id, requester=agent, action=TRANSFER, redemption_key="k"
            )
            link.hush("there", "back")
            assert not await redeemer.report_together(receipt=receipt, result=Result.SUCCEEDED, detail="")

    run(scenario)
    assert not Outcome.objects.exists()


def test_a_database_that_takes_connections_and_says_nothing_hangs_nobody(
    agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved = make_approved(agent, alice)

    async def scenario() -> None:
        async with linked(monkeypatch) as link:
            link.refuses = True
            async with redeemer.running():
                receipt = await redeemer.redeem(
                    confirmation_id=approved.id, requester=agent, action=TRANSFER, redemption_key="k"
                )
                assert not receipt.replayed

    run(scenario)


def test_who_waits_is_woken_although_both_connections_fell_silent(
    agent: Principal, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "HEARD", 0.1)
    approved = make_approved(agent, alice, action=replace(TRANSFER, name="before"))
    pending = make_pending(agent)

    def approve() -> None:
        try:
            decide(pending, alice)
        finally:
            connection.close()

    async def scenario() -> None:
        async with linked(monkeypatch) as link, waiting.listening():
            known = await waiting.changed(since=1, within=dt.timedelta(seconds=10))
            assert await settled(approved.id, within=dt.timedelta(seconds=10)) is Status.APPROVED
            assert link.opened == 2
            waiter = asyncio.create_task(settled(pending.id, within=dt.timedelta(seconds=15)))
            link.hush("there", "back")
            await anyio.to_thread.run_sync(approve)
            assert await waiter is Status.APPROVED
            # The listening connection is new too: it says that something was missed.
            assert await waiting.changed(since=known, within=dt.timedelta(seconds=10)) > known

    run(scenario)


@pytest.mark.parametrize("silent", ["there", "back"])
@pytest.mark.parametrize("mode", ["autocommit", "transaction"])
def test_a_thread_that_asks_into_the_silence_is_let_go_and_connects_anew(
    silent: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(link: Link, port: int) -> None:
        own = DatabaseWrapper(connection.settings_dict | {"HOST": "127.0.0.1", "PORT": port})
        own.set_autocommit(mode == "autocommit")
        with own.cursor() as cursor, patience(seconds=SECONDS):
            cursor.execute("SELECT 7")
            link.hush(silent)
            with pytest.raises(OperationalError, match="not answered in time"):
                cursor.execute("SELECT 7")
        own.close_if_unusable_or_obsolete()
        with own.cursor() as cursor:
            cursor.execute("SELECT 7")
            assert cursor.fetchone() == (7,)
        own.close()
        assert link.opened == 2

    async def scenario() -> None:
        async with linked(monkeypatch) as link:
            port = int(conninfo_to_dict(dsn.conninfo())["port"])
            await anyio.to_thread.run_sync(ask, link, port)

    run(scenario)


def test_an_error_that_the_database_tells_of_costs_no_connection() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 1")
        with pytest.raises(OperationalError, match="statement timeout"):
            cursor.execute("SELECT pg_sleep(20)")
        cursor.execute("RESET statement_timeout")

    assert connection.is_usable()


def test_who_lets_a_statement_run_for_longer_waits_for_longer() -> None:
    with connection.cursor() as cursor, patience(seconds=0.2):
        with patience(seconds=None):
            cursor.execute("SELECT pg_sleep(0.4)")
        with pytest.raises(OperationalError, match="not answered in time"):
            cursor.execute("SELECT pg_sleep(0.6)")
    connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="packets are dropped as Linux does it")
def test_a_thread_whose_packets_nobody_acknowledges_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    given = connection.get_connection_params()
    assert given["tcp_user_timeout"] == 15_000

    def ask(link: Link) -> None:
        known = {key: value for key, value in given.items() if key in env.CONNECTION}
        with psycopg.connect(dsn.conninfo(), **known | {"tcp_user_timeout": 500}, autocommit=True) as own:
            assert own.execute("SELECT 7").fetchone() == (7,)
            link.lose_packets()
            with pytest.raises(psycopg.OperationalError, match="timed out"):
                own.execute("SELECT 7")

    async def scenario() -> None:
        async with linked(monkeypatch) as link:
            await anyio.to_thread.run_sync(ask, link)

    run(scenario)


def test_every_connection_notices_a_dead_peer_and_waits_for_none() -> None:
    with psycopg.connect(dsn.conninfo()) as own:
        found = own.info.get_parameters()
    connection.ensure_connection()
    djangos = connection.connection.info.get_parameters()

    assert env.CONNECTION.keys() == {
        "connect_timeout",
        "keepalives_idle",
        "keepalives_interval",
        "keepalives_count",
        "tcp_user_timeout",
    }
    for key, value in env.CONNECTION.items():
        assert found[key] == djangos[key] == str(value)


def test_postgres_gives_up_on_a_statement_before_the_event_loop_does() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM current_setting('statement_timeout')::interval)")
        assert 0 < cursor.fetchone()[0] < dsn.PATIENCE

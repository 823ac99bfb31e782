"""How close the ledger is to what Postgres itself can do.

    ./hub bench ledger [--quick]

In one run on one server: redemptions a second, of `ledger.redeem` in threads and of the `redeemer`, against
pgbench with the same UPDATE and event INSERT, prepared, one by one; a redemption among many rows against one
among few; and what a waiter costs and how soon it wakes.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import statistics
import subprocess
import tempfile
import threading
import time
import tracemalloc
import uuid
from itertools import batched, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench import common
from tests.bench.common import Bar, percentile, say, tell

if TYPE_CHECKING:
    from confirmhub.confirmations.actions import Action

STRIDE = 50_000  # rows of one of pgbench's clients
CALLERS = (1, 4, 8, 64)
AUDIENCE = "http://localhost:8000/mcp"
SMALL = "bench_small"
CLIENT = "https://agent.example/client.json"

# One row: approved, an hour to go, with the two events that it has by then.
SEED = """
WITH row AS (
    INSERT INTO confirmations_confirmation (
        id, requester_client_id, requester_subject, audience, action, arguments, digest, summary, facts,
        fingerprint, question, tool_digest, view_digest, policy, mode, approvals_needed,
        self_approval,
        redeem_within, assurance, refusals, status, requested_at, decide_by, redeem_by, settled_at,
        settled_reason, event_count, event_head, sealed_events)
    SELECT asked.id, %(client)s, %(subject)s, %(audience)s, 'bench', '{{}}', asked.digest, '""', '[]',
        '', 'Redeem?', '', sha256(''), 'built-in', 'confirm', 1, false,
        interval '1 hour', 'page', 0, '{status}', now(), now() + interval '10 min',
        now() + interval '2 hours', now(), '""', 2,
        sha256(uuid_send(asked.id)), 0
    FROM ({rows}) AS asked RETURNING id, event_head
)
INSERT INTO confirmations_event (confirmation_id, seq, kind, actor, at, detail, hash)
SELECT id, seq, kind, 'bench', now(), '{{}}', CASE seq WHEN 1 THEN sha256('') ELSE event_head END
FROM row, (VALUES (1, 'requested'), (2, 'approve')) AS happened (seq, kind)
"""

# The number of a row makes its id and its digest, so that pgbench finds each row once without looking it up.
PGBENCH = """\\set i :i + 1
\\set n {base} + :client_id * {stride} + :i
WITH spent AS (
    UPDATE confirmations_confirmation AS c
    SET status = 'redeemed', redeemed_at = statement_timestamp(), redemption_key = 'key-{base}',
        event_count = c.event_count + 1,
        event_head = confirmhub_event_hash(
            c.event_head, c.id, c.event_count + 1, 'redeemed', 'bench', statement_timestamp(), '{{}}')
    WHERE c.id = ('00000000-0000-4000-8000-' || lpad(to_hex(:n::int), 12, '0'))::uuid
        AND c.status = 'approved' AND c.redeem_by > statement_timestamp()
        AND c.requester_client_id = '{client}' AND c.requester_subject = '{subject}'
        AND c.audience = '{audience}' AND c.digest = decode(lpad(to_hex(:n::int), 64, '0'), 'hex')
    RETURNING c.id, c.event_count, c.event_head, c.redeemed_at
)
INSERT INTO confirmations_event (confirmation_id, seq, kind, actor, at, detail, hash)
SELECT id, event_count, 'redeemed', 'bench', redeemed_at, '{{}}', event_head FROM spent;
"""


class Bench:
    def __init__(self, url: str, *, seconds: float) -> None:
        from django.contrib.auth.models import User
        from django.db import connection

        from confirmhub.confirmations.principals import Principal

        self.url, self.seconds = url, seconds
        self.subject = str(User.objects.create_user("bench").pk)
        self.requester = Principal(CLIENT, self.subject)
        self.numbers = count()
        self.runs = 0

        # A copy with next to nothing in it, to measure the large one against.
        self.large = connection.settings_dict["NAME"]
        self.approved(1_000)
        connection.close()
        self.use("postgres")
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {SMALL} TEMPLATE {self.large}")
        self.use(self.large)

    def use(self, database: str) -> None:
        from django.db import connection

        connection.close()
        connection.settings_dict["NAME"] = database
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")  # seeding is slow; what is measured has its own

    def seed(self, rows: str, values: dict[str, Any], *, status: str = "approved") -> None:
        """Insert rows as their owner can, past the guards: by the ledger it would take the day."""
        from django.db import connection, transaction

        from confirmhub.database.base import patience

        known = {"client": CLIENT, "subject": self.subject, "audience": AUDIENCE}
        with patience(seconds=None), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("ALTER TABLE confirmations_confirmation DISABLE TRIGGER USER")
            cursor.execute("ALTER TABLE confirmations_event DISABLE TRIGGER USER")
            cursor.execute(SEED.format(rows=rows, status=status), known | values)
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("ALTER TABLE confirmations_confirmation ENABLE TRIGGER USER")
            cursor.execute("ALTER TABLE confirmations_event ENABLE TRIGGER USER")

    def approved(self, number: int) -> list[tuple[uuid.UUID, Action]]:
        """So many approved rows, each with the action that redeems it."""
        from confirmhub.confirmations.actions import Action
        from confirmhub.confirmations.ids import new_id

        found = [
            (new_id(), Action(audience=AUDIENCE, name="bench", arguments={"n": next(self.numbers)}))
            for _ in range(number)
        ]
        rows = "SELECT * FROM unnest(%(ids)s::uuid[], %(digests)s::bytea[]) AS asked (id, digest)"
        for some in batched(found, 10_000):
            self.seed(
                rows, {"ids": [id_ for id_, _ in some], "digests": [action.digest for _, action in some]}
            )
        self.settle()
        return found

    def settle(self) -> None:
        """Leave no work of the seeding for the clock to run over."""
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def pgbench(self, callers: int) -> float:
        """Transactions a second of Postgres alone."""
        from confirmhub.confirmations.models import Confirmation
        from confirmhub.ops import binaries

        self.runs += 1
        base, each = self.runs * 64 * STRIDE, int(9_000 * self.seconds / min(callers, 32))
        assert each < STRIDE
        for client in range(callers):
            first = base + client * STRIDE + 1
            self.seed(
                "SELECT ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id,"
                " decode(lpad(to_hex(n), 64, '0'), 'hex') AS digest"
                " FROM generate_series(%(first)s, %(last)s) AS n",
                {"first": first, "last": first + each},
            )
        self.settle()
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "redeem.sql"
            text = PGBENCH.format(
                client=CLIENT, subject=self.subject, audience=AUDIENCE, base=base, stride=STRIDE
            )
            script.write_text(text)
            command = [binaries.find() / "pgbench", "-n", "-M", "prepared", "-D", "i=0", "-f", script]
            command += ["-c", str(callers), "-j", "2", "-T", str(int(self.seconds)), self.url]
            run = subprocess.run(command, check=False, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        tps = float(next(line for line in run.stdout.splitlines() if line.startswith("tps")).split()[2])
        spent = Confirmation.objects.filter(redemption_key=f"key-{base}").count()
        done = int(
            next(line for line in run.stdout.splitlines() if "processed" in line).split()[-1].split("/")[0]
        )
        assert spent == done, f"pgbench ran out of rows: {spent} of {done} transactions redeemed one"
        return tps

    def threads(self, callers: int) -> float:
        """Redemptions a second of `ledger.redeem`, each caller a thread with its connection."""
        from django.db import connection

        shares = self.shares(callers, most=3_000)
        done = [0] * callers
        start = threading.Barrier(callers + 1)

        def call(number: int) -> None:
            connection.ensure_connection()
            start.wait()
            for id_, action in shares[number]:
                if time.perf_counter() > self.until:
                    break
                self.redeem(id_, action)
                done[number] += 1
            connection.close()

        running = [threading.Thread(target=call, args=(number,)) for number in range(callers)]
        for thread in running:
            thread.start()
        began = time.perf_counter()
        self.until = began + self.seconds
        start.wait()
        for thread in running:
            thread.join()
        return sum(done) / (time.perf_counter() - began)

    def redeem(self, id_: uuid.UUID, action: Action) -> None:
        from confirmhub.confirmations import ledger

        receipt = ledger.redeem(
            confirmation_id=id_, requester=self.requester, action=action, redemption_key="key"
        )
        assert not receipt.replayed

    def batched(self, callers: int) -> float:
        """Redemptions a second of the `redeemer`, each caller a task that waits for its answer."""
        from confirmhub.confirmations import redeemer

        shares = self.shares(callers, most=9_000)

        async def call(number: int, until: float) -> int:
            done = 0
            for id_, action in shares[number]:
                if time.perf_counter() > until:
                    break
                receipt = await redeemer.redeem(
                    confirmation_id=id_, requester=self.requester, action=action, redemption_key="key"
                )
                assert not receipt.replayed
                done += 1
            return done

        async def run() -> float:
            async with redeemer.running():
                began = time.perf_counter()
                done = await asyncio.gather(
                    *(call(number, began + self.seconds) for number in range(callers))
                )
                return sum(done) / (time.perf_counter() - began)

        return asyncio.run(run())

    def shares(self, callers: int, *, most: int) -> list[list[tuple[uuid.UUID, Action]]]:
        """Rows for each caller, as many as it could spend at `most` a second together."""
        rows = self.approved(int(most * self.seconds))
        return [rows[number::callers] for number in range(callers)]

    def one(self, number: int) -> float:
        """Seconds that one redemption takes, alone: the median of so many."""
        taken = []
        for id_, action in self.approved(number):
            began = time.perf_counter()
            self.redeem(id_, action)
            taken.append(time.perf_counter() - began)
        return statistics.median(taken)

    def fill(self, rows: int) -> None:
        """Finished rows, as years of use leave them."""
        for first in range(0, rows, 100_000):
            self.seed(
                "SELECT uuidv7() AS id, sha256(n::text::bytea) AS digest"
                " FROM generate_series(%(first)s, %(last)s) AS n",
                {"first": first, "last": min(first + 100_000, rows) - 1},
                status="expired",
            )
            say(f"  {min(first + 100_000, rows):,} rows")
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")

    def waiters(self, number: int, woken: int) -> dict[str, float]:
        """What each of so many waiters takes of memory, and how soon it wakes at the decision."""
        from confirmhub.confirmations import waiting

        rows = [id_ for id_, _ in self.approved(number)]
        self.reopen(rows)
        woke: dict[uuid.UUID, float] = {}

        async def wait(id_: uuid.UUID) -> None:
            stays = asyncio.Queue[dict[str, Any]]().get
            await waiting.settled_for(stays, id_, within=dt.timedelta(hours=1))
            woke[id_] = time.perf_counter()

        async def run() -> dict[str, float]:
            async with waiting.listening():
                tracemalloc.start()
                tasks = [asyncio.create_task(wait(id_)) for id_ in rows]
                assert waiting._current is not None
                while len(waiting._current.waiting) < number or waiting._current.unread:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                each = tracemalloc.get_traced_memory()[0] / number
                tracemalloc.stop()
                delays = []
                for id_ in rows[:: number // woken]:
                    decided = await asyncio.to_thread(self.deny, id_)
                    while id_ not in woke:  # noqa: ASYNC110 - gives way, and waits for no time to pass
                        await asyncio.sleep(0)
                    delays.append(woke[id_] - decided)
                for task in tasks:
                    task.cancel()
                return {
                    "waiters": number,
                    "bytes_each": round(each),
                    "wake_p50_ms": round(percentile(delays, 50) * 1_000, 1),
                    "wake_p99_ms": round(percentile(delays, 99) * 1_000, 1),
                }

        return asyncio.run(run())

    def reopen(self, rows: list[uuid.UUID]) -> None:
        from django.db import connection, transaction

        from confirmhub.confirmations.models import Confirmation

        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("ALTER TABLE confirmations_confirmation DISABLE TRIGGER USER")
            Confirmation.objects.filter(id__in=rows).update(status="pending", settled_at=None, redeem_by=None)
            cursor.execute("ALTER TABLE confirmations_confirmation ENABLE TRIGGER USER")

    def deny(self, id_: uuid.UUID) -> float:
        """Decide, in a thread; return when it was committed."""
        from django.contrib.auth.models import User

        from confirmhub.confirmations import ledger
        from confirmhub.confirmations.models import Confirmation
        from confirmhub.confirmations.states import Verdict

        shown = bytes(Confirmation.objects.values_list("view_digest", flat=True).get(id=id_)).hex()
        ledger.decide(
            confirmation_id=id_,
            approver=User.objects.get(pk=int(self.subject)),
            verdict=Verdict.DENY,
            digest_shown=shown,
        )
        return time.perf_counter()


def rounds(bench: Bench, callers: int, *, runs: int) -> dict[str, float]:
    """The best of some runs of each, in turns, so that what else the machine does hits all alike."""
    best = {"pgbench": 0.0, "ledger": 0.0, "redeemer": 0.0}
    measures = (bench.pgbench, bench.threads, bench.batched)
    for _ in range(runs):
        for name, measure in zip(best, measures, strict=True):
            best[name] = max(best[name], measure(callers))
    ratios = {f"{name}_ratio": round(best[name] / best["pgbench"], 2) for name in ("ledger", "redeemer")}
    return {name: round(value) for name, value in best.items()} | ratios


def flat(bench: Bench, rows: int) -> dict[str, float]:
    """A redemption among many rows against one among a thousand, in turns."""
    bench.fill(rows)
    taken: dict[str, list[float]] = {SMALL: [], bench.large: []}
    for _ in range(7):
        for name, times in taken.items():
            bench.use(name)
            times.append(bench.one(300))
    few, many = (min(times) for times in taken.values())
    return {
        "rows": rows,
        "ms_at_1000": round(few * 1_000, 2),
        "ms": round(many * 1_000, 2),
        "ratio": round(many / few, 2),
    }


def main() -> None:
    options = common.arguments(__doc__)
    seconds, many, runs = (2, 100_000, 1) if options.quick else (3, 1_000_000, 3)
    with common.database() as url:
        bench = Bench(url, seconds=seconds)
        found: dict[str, Any] = {"redemptions_per_second": {}}
        for callers in CALLERS:
            found["redemptions_per_second"][callers] = rounds(bench, callers, runs=runs)
            tell(f"{callers} callers", found["redemptions_per_second"][callers])
        found["waiting"] = bench.waiters(2_000 if options.quick else 10_000, 100 if options.quick else 500)
        tell("waiting", found["waiting"])
        found["flat"] = flat(bench, many)
        tell("flat", found["flat"])
    many_callers, waiting = found["redemptions_per_second"], found["waiting"]
    common.conclude(
        Bar("ledger.redeem, of pgbench, 8 callers", many_callers[8]["ledger_ratio"], 0.35, at_least=True),
        Bar("redeemer, of pgbench, 64 callers", many_callers[64]["redeemer_ratio"], 0.9, at_least=True),
        Bar("a redemption among many rows, of one among 1,000", found["flat"]["ratio"], 1.2),
        Bar("memory of a waiter", waiting["bytes_each"], 20_000, "bytes"),
        Bar("decision to wake-up, p99", waiting["wake_p99_ms"], 250, "ms"),
        **found,
    )


if __name__ == "__main__":
    main()

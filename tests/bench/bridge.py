"""What a guarded call costs beside a bare one, and how many hosts can wait at once.

    ./hub bench bridge [--quick]

One web process, as it runs in production, and the same bearer token in every call. In turns, calls a second
of a bare tool of the SDK, and of a guarded one that was approved: it opens its sealed state, looks again,
redeems, acts and records the outcome. Two of each, one of functions that may block and one of coroutine
functions, each held to its like. The bar is for as many hosts as keep the process busy, which is what it can
do; what it does for fewer, all of whom wait for the database at times, stands beside. Then so many hosts wait
at once for a person: what each takes of the server's memory, and how soon it has its result once the decision
is committed.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import batched, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench import common
from tests.bench.common import Bar, percentile, say

if TYPE_CHECKING:
    from confirmhub.confirmations.principals import Principal

BAR = 0.6
BARE = ("count_bare", "count_bare_on_the_loop")
GUARDED = ("count_guarded", "count_guarded_on_the_loop")
BAR_MS = 500
CALLERS = (16, 64, 128)  # hosts that call at once; the fewer they are, the oftener all wait for the database
PATIENCE = 60  # seconds for an answer; longer than a call is held
CLIENT = "https://agent.example/client.json"
SCOPES = "confirm:read confirm:request confirm:redeem"
META = "io.modelcontextprotocol"
MODERN = "2026-07-28"

_numbers = count()


class Rows:
    """Confirmations of the guarded tools, as their owner can write them, past the guards."""

    def __init__(self, requester: Principal) -> None:
        self.requester = requester

    def make(self, number: int, *, tool: str, status: str) -> list[tuple[int, uuid.UUID]]:
        """So many rows in this status, each by the argument of its call and its id."""
        from django.conf import settings
        from django.db import connection, transaction

        from confirmhub.confirmations.ids import new_id
        from tests.bench import guarded
        from tests.bench.ledger import SEED

        made = [(next(_numbers), new_id()) for _ in range(number)]
        rows = "SELECT * FROM unnest(%(ids)s::uuid[], %(digests)s::bytea[]) AS asked (id, digest)"
        known = {
            "client": self.requester.client_id,
            "subject": self.requester.subject,
            "audience": settings.MCP_RESOURCE,
        }
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("ALTER TABLE confirmations_confirmation DISABLE TRIGGER USER")
            cursor.execute("ALTER TABLE confirmations_event DISABLE TRIGGER USER")
            for some in batched(made, 10_000):
                called = guarded.TOOLS[tool]
                digests = [called.action(guarded.Count(n=n)).digest for n, _ in some]
                values = {"ids": [id_ for _, id_ in some], "digests": digests}
                cursor.execute(SEED.format(rows=rows, status="approved"), known | values)
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            if status == "pending":
                cursor.execute(
                    "UPDATE confirmations_confirmation SET status = 'pending', settled_at = NULL,"
                    " redeem_by = NULL, decide_by = now() + interval '1 hour' WHERE id = ANY(%s)",
                    [[id_ for _, id_ in made]],
                )
            cursor.execute("ALTER TABLE confirmations_confirmation ENABLE TRIGGER USER")
            cursor.execute("ALTER TABLE confirmations_event ENABLE TRIGGER USER")
            cursor.execute("ANALYZE")
        return made


class Calls:
    """The requests of a modern host, ready to be sent, so that the load costs as little as it can."""

    def __init__(self, host: str, token: str, requester: Principal) -> None:
        self.host, self.token = host, token
        self.states = States(requester)

    def bare(self, tool: str) -> bytes:
        return self._request(tool, {"n": next(_numbers)})

    def guarded(self, tool: str, n: int, confirmation_id: uuid.UUID) -> bytes:
        """The second round of a call: with the state that the first was answered."""
        from mcp_bridge.rounds import State

        state = self.states.seal(tool, {"n": n}, str(State(confirmation_id, 1)))
        return self._request(tool, {"n": n}, requestState=state)

    def again(self, n: int, state: str) -> bytes:
        """A later round, with the state as the server sealed it."""
        return self._request("count_guarded", {"n": n}, requestState=state)

    def _request(self, tool: str, arguments: dict[str, Any], **params: Any) -> bytes:
        message = {
            "jsonrpc": "2.0",
            "id": next(_numbers),
            "method": "tools/call",
            "params": {
                "name": tool,
                "arguments": arguments,
                "_meta": {
                    f"{META}/protocolVersion": MODERN,
                    f"{META}/clientInfo": {"name": "bench", "version": "0"},
                    f"{META}/clientCapabilities": {"elicitation": {"url": {}}},
                },
                **params,
            },
        }
        body = json.dumps(message).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nhost: {self.host}\r\nauthorization: Bearer {self.token}\r\n"
            "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
            f"mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class States:
    """Seals what the server would have: it shares the key, and getting each by a call would take minutes."""

    def __init__(self, requester: Principal) -> None:
        from django.conf import settings
        from mcp.server.request_state import AESGCMRequestStateCodec

        self.codec = AESGCMRequestStateCodec(settings.SEALING_KEYS)
        self.audience = settings.MCP_RESOURCE
        self.principal = json.dumps(
            [requester.client_id, settings.ISSUER, requester.subject], separators=(",", ":")
        )

    def seal(self, tool: str, arguments: dict[str, Any], state: str) -> str:
        from mcp.server import request_state as sdk

        method = "tools/call"
        _, digest = sdk._request_identity(method, {"name": tool, "arguments": arguments})
        now = time.time()
        claims = {
            "v": 1, "iat": now, "exp": now + 600, "m": method, "t": tool, "a": digest, "s": state,
            "aud": self.audience, "p": sdk._principal_claim(self.principal),
        }  # fmt: skip
        return self.codec.seal(json.dumps(claims).encode())


class Host:
    """One connection that is kept open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> Host:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def call(self, request: bytes) -> dict[str, Any]:
        self.writer.write(request)
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await self.reader.readexactly(length)
        assert head.startswith(b"HTTP/1.1 200"), head + body
        found: dict[str, Any] = json.loads(body)["result"]
        return found

    def close(self) -> None:
        self.writer.close()


async def load(port: int, requests: Sequence[bytes], seconds: float, *, callers: int) -> list[float]:
    """What each call took, in seconds, of so many hosts that call at once for so long."""
    left, taken = iter(requests), []
    hosts = [await Host.connect(port) for _ in range(callers)]
    until = time.perf_counter() + seconds

    async def work(host: Host) -> None:
        for request in left:
            sent = time.perf_counter()
            if sent > until:
                return
            result = await host.call(request)
            assert not result["isError"], result
            assert result["content"][0]["text"].startswith("Counted "), result
            taken.append(time.perf_counter() - sent)

    await asyncio.gather(*map(work, hosts))
    for host in hosts:
        host.close()
    assert next(left, None) is not None, "there were too few requests for the time"
    return taken


def ratio(port: int, pid: int, calls: Calls, rows: Rows, *, turns: int, callers: int) -> dict[str, Any]:
    """Short turns of each, so that what else the machine does hits both alike; the first warms up.

    The turn in the middle counts: a disk that stalls for a moment stalls all who commit then.
    """
    most = {name: 4_000 if name in BARE else 2_500 for name in (*BARE, *GUARDED)}  # calls in a turn
    found: dict[str, Any] = {name: {"rates": [], "seconds": 0.0, "cpu": 0.0, "taken": []} for name in most}
    # All at first, so that the database is not busy with writing them down while calls are measured.
    approved = {
        name: batched(rows.make(most[name] * (turns + 1), tool=name, status="approved"), most[name])
        for name in GUARDED
    }
    for turn in range(turns + 1):
        requests = {name: [calls.bare(name) for _ in range(most[name])] for name in BARE}
        for name in GUARDED:
            requests[name] = [calls.guarded(name, *row) for row in next(approved[name])]
        for name, each in found.items():
            began, cpu = time.perf_counter(), cpu_seconds(pid)
            taken = asyncio.run(load(port, requests[name], 1.0, callers=callers))
            if turn:
                seconds = time.perf_counter() - began
                each["rates"].append(len(taken) / seconds)
                each["seconds"] += seconds
                each["cpu"] += cpu_seconds(pid) - cpu
                each["taken"] += taken
    told = {
        name: {
            "per_second": round(statistics.median(each["rates"])),
            "p50_ms": round(percentile(each["taken"], 50) * 1_000, 1),
            "p99_ms": round(percentile(each["taken"], 99) * 1_000, 1),
            "server_cpu_ms": round(each["cpu"] / len(each["taken"]) * 1_000, 2),
            "server_busy": round(each["cpu"] / each["seconds"], 2),
        }
        for name, each in found.items()
    }
    speed = {name: statistics.median(each["rates"]) for name, each in found.items()}
    ratios = [round(speed[guarded] / speed[bare], 2) for guarded, bare in zip(GUARDED, BARE, strict=True)]
    return told | dict(zip(("ratio", "ratio_on_the_loop"), ratios, strict=True))


def cpu_seconds(pid: int) -> float:
    """What the process has had of the processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waiters(port: int, pid: int, calls: Calls, rows: Rows, *, number: int, woken: int) -> dict[str, float]:
    """What each of so many hosts takes that wait at once, and how soon each of some has its result."""
    from confirmhub.ops.web import raise_descriptor_limit

    raise_descriptor_limit()
    pending = rows.make(number, tool="count_guarded", status="pending")
    hosts: list[Host] = []
    rounds: dict[int, int] = {}

    async def wait(n: int, confirmation_id: uuid.UUID) -> float:
        # It connects when it calls: a connection on which nothing comes is ended after ten seconds.
        host = await Host.connect(port)
        hosts.append(host)
        request = calls.guarded("count_guarded", n, confirmation_id)
        while True:
            rounds[n] = rounds.get(n, 0) + 1
            result = await host.call(request)
            if result["resultType"] != "input_required":
                break
            request = calls.again(n, result["requestState"])
        assert result["structuredContent"]["status"] == "done", result
        return time.perf_counter()

    async def run() -> dict[str, float]:
        idle = memory(pid)
        began = time.perf_counter()
        tasks: dict[int, asyncio.Task[float]] = {}
        for n, id_ in pending:
            tasks[n] = asyncio.create_task(wait(n, id_))
            await asyncio.sleep(0.005)  # as fast as one process takes them, and not in a burst
        arrived = time.perf_counter() - began
        full = memory(pid)
        delays = []
        for n, id_ in pending[:: number // woken]:
            decided = await asyncio.to_thread(approve, id_)
            delays.append(await tasks[n] - decided)
        spent = time.perf_counter() - began
        for task in tasks.values():
            task.cancel()
        outcomes = await asyncio.gather(*tasks.values(), return_exceptions=True)
        failed = [found for found in outcomes if isinstance(found, Exception)]
        assert not failed, failed[:3]
        for host in hosts:
            host.close()
        return {
            "hosts": number,
            "arrived_within_s": round(arrived, 1),
            "rounds_per_second": round(sum(rounds.values()) / spent),
            "idle_mb": round(idle / 1_000),
            "over_idle_mb": round((full - idle) / 1_000),
            "kb_each": round((full - idle) / number, 1),
            "decide_to_result_p50_ms": round(percentile(delays, 50) * 1_000, 1),
            "decide_to_result_p99_ms": round(percentile(delays, 99) * 1_000, 1),
        }

    return asyncio.run(run())


def memory(pid: int) -> int:
    """Kilobytes (1,000 bytes) that the process has in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1_024 // 1_000


def approve(confirmation_id: uuid.UUID) -> float:
    """Decide as the acting user does; return when it was committed."""
    from django.contrib.auth.models import User

    from confirmhub.confirmations.models import Confirmation
    from tests.factories import decide

    confirmation = Confirmation.objects.get(id=confirmation_id)
    decide(confirmation, User.objects.get(pk=confirmation.requester_subject))
    return time.perf_counter()


@contextmanager
def served(listener: socket.socket) -> Iterator[subprocess.Popen[bytes]]:
    """The web process, on a socket that listens."""
    command = [sys.executable, "-m", "confirmhub.ops.web", str(listener.fileno())]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command, cwd=common.ROOT, pass_fds=[listener.fileno()], stderr=log, stdout=log
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
            log.seek(0)
            if found := log.read():
                sys.stderr.buffer.write(found[-4000:])


def main() -> None:
    options = common.arguments(__doc__)
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as static:
        os.environ["PUBLIC_URL"] = f"http://localhost:{listener.getsockname()[1]}"
        os.environ["STATIC_ROOT"] = static
        os.environ["GUARDED_TOOLS"] = "tests.bench.guarded"
        with common.database():
            found = measure(listener, quick=options.quick)
    common.conclude(
        Bar("guarded calls, of bare ones", found[f"callers_{CALLERS[-1]}"]["ratio"], BAR, at_least=True),
        Bar("the same on the loop", found[f"callers_{CALLERS[-1]}"]["ratio_on_the_loop"], BAR, at_least=True),
        Bar("decision to result, p99", found["waiting"]["decide_to_result_p99_ms"], BAR_MS, "ms"),
        **found,
    )


def measure(listener: socket.socket, *, quick: bool) -> dict[str, Any]:
    from django.conf import settings
    from django.contrib.auth.models import User

    from confirmhub.confirmations.principals import Principal
    from tests.bridge.hosts import make_token

    user = User.objects.create_user("bench")
    requester = Principal(CLIENT, str(user.pk))
    token = make_token(user, resource=settings.MCP_RESOURCE, scope=SCOPES, client_id=CLIENT)
    port: int = listener.getsockname()[1]
    calls, rows = Calls(f"localhost:{port}", token, requester), Rows(requester)
    with served(listener) as server:
        found: dict[str, Any] = {}
        for callers in CALLERS:
            turns = 4 if quick else 12
            told = ratio(port, server.pid, calls, rows, turns=turns, callers=callers)
            say(f"{callers} callers: {told}")
            found[f"callers_{callers}"] = told
    with served(listener) as server:
        waiting = waiters(port, server.pid, calls, rows, number=2_000, woken=100 if quick else 400)
        found["waiting"] = waiting
        say(f"waiting: {waiting}")
    return found


if __name__ == "__main__":
    main()

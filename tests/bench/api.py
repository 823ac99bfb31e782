"""How much of what Postgres can do reaches who redeems over HTTP.

    ./hub bench api [--quick]

One web process, as the product serves it. In turns, redemptions a second of pgbench, which does the same
update and event prepared and one by one, and of HTTP requests with a bearer token, each for another approved
confirmation; then reads, and questions of a service for many people. The caller writes requests that were
made before, and looks at no more of an answer than its status: it shares the processors with all that.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.bench import bridge, common, ledger
from tests.bench.common import Bar, percentile, say

if TYPE_CHECKING:
    from confirmhub.confirmations.actions import Action

BAR = 0.5
CONNECTIONS = (16, 64)
HOST = "localhost:8000"  # what PUBLIC_URL says by default, and the ledger's rows; the port is another
PEOPLE = 150  # each may be asked so often a minute, and have so many questions open

_numbers = count()


class Connection(asyncio.Protocol):
    """Sends a request, and the next one when the answer is there."""

    def __init__(self, requests: Iterator[bytes], until: float, done: asyncio.Future[None]) -> None:
        self.requests, self.until, self.done = requests, until, done
        self.taken: list[float] = []
        self.answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.sent = time.perf_counter()
        request = next(self.requests, None) if self.sent < self.until else b""
        if request:
            self.transport.write(request)
            return
        self.transport.close()
        if request is None:
            self.fail("there were too few requests for the time")
        elif not self.done.done():
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self.answer += data
        head, _, body = self.answer.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if not length or len(body) < int(length):
            return
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            self.fail(self.answer.decode(errors="replace"))
            return
        self.taken.append(time.perf_counter() - self.sent)
        self.answer = b""
        self.send()

    def fail(self, why: str) -> None:
        self.transport.close()
        if not self.done.done():
            self.done.set_exception(AssertionError(why))


async def load(port: int, requests: Sequence[bytes], *, connections: int, seconds: float) -> list[float]:
    """What each answer took, in seconds, of so many connections for so long."""
    loop = asyncio.get_running_loop()
    left, until = iter(requests), time.perf_counter() + seconds
    ends = [loop.create_future() for _ in range(connections)]
    opened = [
        await loop.create_connection(lambda end=end: Connection(left, until, end), "127.0.0.1", port)
        for end in ends
    ]
    await asyncio.gather(*ends)
    return [seconds for _, connection in opened for seconds in connection.taken]


class Requests:
    """Requests as bytes, made before the clock runs."""

    def __init__(self, token: str) -> None:
        self.token = token

    def get(self, path: str) -> bytes:
        return f"GET /api/v1/{path} HTTP/1.1\r\n{self._head()}\r\n".encode()

    def post(self, path: str, body: dict[str, Any]) -> bytes:
        raw = json.dumps(body).encode()
        length = f"content-type: application/json\r\ncontent-length: {len(raw)}\r\n"
        return f"POST /api/v1/{path} HTTP/1.1\r\n{self._head()}{length}\r\n".encode() + raw

    def redeem(self, id_: uuid.UUID, action: Action) -> bytes:
        about = {"action": action.name, "arguments": dict(action.arguments)}
        return self.post(f"confirmations/{id_}/redeem", about | {"redemption_key": secrets.token_urlsafe(12)})

    def ask(self, person: int) -> bytes:
        about = {"action": "bench", "arguments": {"n": next(_numbers)}, "on_behalf_of": f"person-{person}"}
        return self.post("confirmations", about)

    def _head(self) -> str:
        return f"host: {HOST}\r\nauthorization: Bearer {self.token}\r\n"


class Api:
    def __init__(self, bench: ledger.Bench, *, port: int, pid: int) -> None:
        from django.contrib.auth.models import User

        from confirmhub.oauth import services
        from tests.bridge.hosts import make_token

        self.bench, self.port, self.pid = bench, port, pid
        user = User.objects.get(pk=int(bench.subject))
        scope = "confirm:read confirm:request confirm:redeem"
        token = make_token(user, resource=ledger.AUDIENCE, scope=scope, client_id=ledger.CLIENT)
        self.program = Requests(token)
        User.objects.bulk_create(User(username=f"person-{number}") for number in range(PEOPLE))
        service, secret = services.create(name="Bench", audience="https://bench.example/api")
        self.service = Requests(_token(port, service.client_id, secret))

    def redeem(self, *, connections: int) -> dict[str, float]:
        rows = self.bench.approved(int(4_000 * self.bench.seconds))
        return self._load([self.program.redeem(*row) for row in rows], connections)

    def read(self, *, connections: int) -> dict[str, float]:
        rows = [id_ for id_, _ in self.bench.approved(200)]
        some = [self.program.get(f"confirmations/{id_}") for id_ in rows]
        return self._load(some * int(20 * self.bench.seconds), connections)

    def ask(self, *, connections: int) -> dict[str, float]:
        number = int(min(500 * self.bench.seconds, PEOPLE * 10))
        return self._load([self.service.ask(n % PEOPLE) for n in range(number)], connections)

    def _load(self, requests: Sequence[bytes], connections: int) -> dict[str, float]:
        began, cpu = time.perf_counter(), bridge.cpu_seconds(self.pid)
        taken = asyncio.run(load(self.port, requests, connections=connections, seconds=self.bench.seconds))
        spent = time.perf_counter() - began
        return {
            "per_second": round(len(taken) / spent),
            "p50_ms": round(percentile(taken, 50) * 1_000, 1),
            "p99_ms": round(percentile(taken, 99) * 1_000, 1),
            "server_cpu_ms": round((bridge.cpu_seconds(self.pid) - cpu) / len(taken) * 1_000, 2),
        }


def _token(port: int, client_id: str, secret: str) -> str:
    import httpx2

    form = {"grant_type": "client_credentials", "scope": "confirm:read confirm:request confirm:redeem"}
    url = f"http://127.0.0.1:{port}/oauth/token"
    answer = httpx2.post(url, data=form, auth=(client_id, secret), headers={"Host": HOST}, timeout=60)
    token: str = answer.raise_for_status().json()["access_token"]
    return token


def rounds(bench: ledger.Bench, api: Api, connections: int, *, runs: int) -> dict[str, Any]:
    """The best of some runs of each, in turns, so that what else the machine does hits both alike."""
    pgbench = 0.0
    best: dict[str, float] = {"per_second": 0}
    for _ in range(runs):
        pgbench = max(pgbench, bench.pgbench(connections))
        best = max(best, api.redeem(connections=connections), key=_per_second)
    return {
        "pgbench_per_second": round(pgbench),
        "http": best,
        "ratio": round(best["per_second"] / pgbench, 2),
    }


def _per_second(found: dict[str, float]) -> float:
    return found["per_second"]


def best(measure: Callable[..., dict[str, float]], *, runs: int, connections: int) -> dict[str, float]:
    return max((measure(connections=connections) for _ in range(runs)), key=_per_second)


def measure(bench: ledger.Bench, api: Api, *, runs: int) -> dict[str, Any]:
    api.redeem(connections=16)  # warms up
    found: dict[str, Any] = {"redeem": {}}
    for connections in CONNECTIONS:
        found["redeem"][connections] = rounds(bench, api, connections, runs=runs)
        say(f"{connections} connections: {found['redeem'][connections]}")
    found["read"] = best(api.read, runs=runs, connections=16)
    say(f"read: {found['read']}")
    found["ask"] = best(api.ask, runs=1, connections=16)
    say(f"ask: {found['ask']}")
    return found


def main() -> None:
    options = common.arguments(__doc__)
    seconds, runs = (2, 2) if options.quick else (4, 4)
    os.environ.pop("PUBLIC_URL", None)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        tempfile.TemporaryDirectory() as static,
    ):
        os.environ["STATIC_ROOT"] = static
        with common.database() as url:
            bench = ledger.Bench(url, seconds=seconds)  # it copies the database, which nobody may use then
            with bridge.served(listener) as server:
                api = Api(bench, port=listener.getsockname()[1], pid=server.pid)
                found = measure(bench, api, runs=runs)
    common.conclude(
        *(
            Bar(
                f"redemptions over HTTP, of pgbench, {connections} connections",
                each["ratio"],
                BAR,
                at_least=True,
            )
            for connections, each in found["redeem"].items()
        ),
        **found,
    )


if __name__ == "__main__":
    main()

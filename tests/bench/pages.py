"""How long the pages take to make, and what they weigh, at 100,000 confirmations or as many as are asked for.

    ./hub bench pages [--quick] [--rows 1000000]

Over real HTTP, from the server as it runs in production, to one person who has half of all rows and is an
operator, too. A page's time is from the request to its last byte, on a connection that is open; beside it
stands what the web process computes for one, which other programs on the machine do not lengthen as they do
the time. Its weight is its own bytes and those of all its files, as they are before any compression.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench import common
from tests.bench.common import Bar, percentile, say, tell

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from confirmhub.confirmations.models import Confirmation

ROWS = 100_000
BAR_MS, BAR_KB = 50, 40
QUEUE_BAR_MS = 200  # at a million
WAITING = 10
AUDIENCE = "http://localhost:8000/mcp"
CLIENT = "https://agent.example/client.json"
QUEUE = "/admin/confirmations/confirmation/"
FILE = re.compile(r'(?:src|href)="(/static/[^"]+)"')

# Rows of a year, the newest first: half of one person's agents, a quarter for their group to approve, and the
# rest of others. As the owner can write them, past the guards: by the ledger it would take the day.
SEED = """
WITH row AS (
    INSERT INTO confirmations_confirmation (
        id, requester_client_id, requester_subject, audience, action, arguments, digest, summary, facts,
        fingerprint, question, tool_digest, view_digest, policy, mode, approver_group_id, approvals_needed,
        self_approval, redeem_within, status, requested_at, decide_by, redeem_by, redeemed_at,
        redemption_key, settled_at, settled_reason, event_count, event_head, sealed_events, assurance,
        refusals, has_outcome)
    SELECT gen_random_uuid(), %(client)s || n %% 5,
        CASE WHEN n %% 2 = 0 THEN %(subject)s ELSE (1000 + n %% 97)::text END,
        %(audience)s, 'delete_file',
        '{"path":"/srv/reports/2026/draft-' || n || '.pdf","recursive":false}', sha256(n::text::bytea),
        '"An outdated draft."', '[["Kind","regular file"],["Size","184 320 bytes"]]', '',
        'Delete one file from reports?', '', sha256(n::text::bytea), 'files',
        CASE WHEN n %% 4 = 1 THEN 'approve' ELSE 'confirm' END,
        CASE WHEN n %% 4 = 1 THEN %(group)s END, 1, false, interval '1 hour',
        CASE n %% 3 WHEN 0 THEN 'redeemed' WHEN 1 THEN 'denied' ELSE 'expired' END,
        at, at + interval '10 min', CASE n %% 3 WHEN 0 THEN at + interval '1 hour' END,
        CASE n %% 3 WHEN 0 THEN at + interval '2 min' END, CASE n %% 3 WHEN 0 THEN n::text END,
        at + interval '2 min', '""', 2, sha256(''), 2, 'page', CASE WHEN n %% 997 = 0 THEN 4 ELSE 0 END,
        n %% 3 = 0 AND n %% 5001 > 0
    FROM (SELECT n, now() - interval '1 hour' - n * interval '5 min' AS at
          FROM generate_series(1, %(rows)s) AS n) AS asked
    RETURNING id, status, requested_at, has_outcome
), decision AS (
    INSERT INTO confirmations_decision (
        confirmation_id, approver_id, verdict, reason, view_digest, renderer, decided_at, assurance)
    SELECT id, %(subject)s::int, CASE status WHEN 'denied' THEN 'deny' ELSE 'approve' END, '""', sha256(''),
        'bench', requested_at + interval '1 min', 'page'
    FROM row WHERE status <> 'expired'
), outcome AS (
    INSERT INTO confirmations_outcome (confirmation_id, result, detail, reported_at)
    SELECT id, 'succeeded', '""', requested_at + interval '3 min' FROM row WHERE has_outcome
)
INSERT INTO confirmations_event (confirmation_id, seq, kind, actor, at, detail, hash)
SELECT id, seq, kind, 'bench', requested_at, '{}', sha256('') FROM row,
    (VALUES (1, 'requested'), (2, 'settled')) AS happened (seq, kind)
"""


def seed(person: User, rows: int) -> None:
    from django.contrib.auth.models import Group
    from django.db import connection, transaction

    from confirmhub.database.base import patience

    group = Group.objects.create(name="finance")
    person.groups.add(group)
    values = {
        "client": CLIENT,
        "subject": str(person.pk),
        "audience": AUDIENCE,
        "group": group.pk,
        "rows": rows,
    }
    tables = [f"confirmations_{name}" for name in ("confirmation", "decision", "outcome", "event")]
    with patience(seconds=None), connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        with transaction.atomic():
            for table in tables:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            cursor.execute(SEED, values)
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for table in tables:
                cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        cursor.execute("VACUUM ANALYZE")


def ask(person: User) -> list[Confirmation]:
    """What waits for the person, by the ledger."""
    from confirmhub.confirmations import ledger
    from confirmhub.confirmations.actions import Action, Observation
    from confirmhub.confirmations.principals import Principal

    seen = Observation((("Kind", "regular file"), ("Size", "2 413 568 bytes")), "etag-1")
    return [
        ledger.request(
            requester=Principal(f"{CLIENT}0", str(person.pk)),
            action=Action(
                AUDIENCE,
                "delete_file",
                {"path": f"/srv/reports/2026/Q3-{number}-\u202efdp.exe", "recursive": False},
            ),
            summary="Removing an outdated copy of the report.",
            observation=seen,
            question="Delete one file from reports?",
        )
        for number in range(WAITING + 1)
    ]


def spend(person: User, confirmation: Confirmation) -> None:
    """Take one through all its states, for a receipt with a whole record."""
    from confirmhub.confirmations import ledger
    from confirmhub.confirmations.actions import Action, parse_arguments
    from confirmhub.confirmations.principals import Principal
    from confirmhub.confirmations.states import Result, Verdict

    ledger.decide(
        confirmation_id=confirmation.id,
        approver=person,
        verdict=Verdict.APPROVE,
        digest_shown=bytes(confirmation.view_digest).hex(),
        reason="As agreed.",
    )
    arguments = parse_arguments(raw=confirmation.arguments.encode())
    receipt = ledger.redeem(
        confirmation_id=confirmation.id,
        requester=Principal(confirmation.requester_client_id, str(person.pk)),
        action=Action(AUDIENCE, confirmation.action, arguments),
        redemption_key=secrets.token_hex(8),
    )
    ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED)


@contextmanager
def served(listener: socket.socket) -> Iterator[tuple[int, int]]:
    """The port and the number of the web process, on a socket that listens."""
    port: int = listener.getsockname()[1]
    command = [sys.executable, "-m", "confirmhub.ops.web", str(listener.fileno())]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command, cwd=common.ROOT, pass_fds=[listener.fileno()], stderr=log, stdout=log
        ) as process,
    ):
        try:
            yield port, process.pid
        finally:
            process.terminate()


def session(person: User) -> str:
    """The cookie of a browser in which they are signed in."""
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    store = SessionStore()
    store[SESSION_KEY] = str(person.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = person.get_session_auth_hash()
    store.create()
    return f"{settings.SESSION_COOKIE_NAME}={store.session_key}"


def computed(pid: int) -> float:
    """Seconds that a process has computed so far (proc_pid_stat(5), utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Browser:
    """One connection, signed in."""

    def __init__(self, port: int, cookie: str) -> None:
        self.connection = http.client.HTTPConnection("localhost", port, timeout=30)
        self.headers = {"Host": f"localhost:{port}", "Cookie": cookie}

    def get(self, path: str) -> bytes:
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:500])
        return body

    def times(self, path: str, number: int, *, warm_up: int = 10) -> list[float]:
        """Milliseconds that each of so many requests takes, after some that warm up."""
        for _ in range(warm_up):
            self.get(path)
        taken = []
        for _ in range(number):
            began = time.perf_counter()
            self.get(path)
            taken.append((time.perf_counter() - began) * 1_000)
        return taken

    def weight(self, path: str) -> float:
        """Kilobytes (1,000 bytes) of the page and all its files."""
        body = self.get(path)
        files = set(FILE.findall(body.decode()))
        return (len(body) + sum(len(self.get(file)) for file in files)) / 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer requests")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many confirmations there are")
    options = parser.parse_args()
    number = 60 if options.quick else 300
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as static:
        os.environ["PUBLIC_URL"] = f"http://localhost:{listener.getsockname()[1]}"
        os.environ["STATIC_ROOT"] = static
        with common.database():
            collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
            subprocess.run(collect, cwd=common.ROOT, check=True)
            found = measure(listener, number, options.rows)
    large = options.rows > ROWS
    bars = []
    for name, page in found.items():
        limit = QUEUE_BAR_MS if large and name.startswith("queue") else BAR_MS
        bars.append(Bar(f"{name}, p95", page["p95_ms"], limit, "ms"))
        if "kb" in page:
            bars.append(Bar(f"{name}, weight", page["kb"], BAR_KB, "KB"))
    common.conclude(*bars, rows=options.rows, pages=found)


def measure(listener: socket.socket, number: int, rows: int) -> dict[str, dict[str, Any]]:
    from django.contrib.auth.models import User

    person = User.objects.create_superuser("bench", password=secrets.token_hex(16))
    say(f"seeding {rows:,} rows")
    seed(person, rows)
    first, *waiting = ask(person)
    spend(person, first)
    ours = {
        "inbox": "/",
        "history": "/history",
        "search": "/history?q=draft-77",
        "confirm": f"/confirm/{waiting[0].id}",
        "receipt": f"/confirm/{first.id}",
    }
    queue = {
        "queue": QUEUE,
        "queue_row": f"{QUEUE}{first.id}/change/",
        "queue_found": f"{QUEUE}?q=draft-77",
        "queue_waiting": f"{QUEUE}?view=waiting",
        "queue_unknown": f"{QUEUE}?view=unknown",
        "queue_refused": f"{QUEUE}?view=refused",
        "queue_undelivered": f"{QUEUE}?view=undelivered",
        "queue_denied": f"{QUEUE}?status__exact=denied",
        "queue_requester": f"{QUEUE}?requester={CLIENT}3",
        "queue_page_50": f"{QUEUE}?p=50",
        "queue_dashboard": "/admin/dashboard?range=month",
    }
    found: dict[str, dict[str, Any]] = {}
    with served(listener) as (port, pid):
        browser = Browser(port, session(person))
        for name, path in (ours | queue).items():
            browser.times(path, 0)
            before = computed(pid)
            taken = browser.times(path, number, warm_up=0)
            found[name] = {
                "computed_ms": round((computed(pid) - before) * 1_000 / number, 1),
                "p50_ms": round(percentile(taken, 50), 1),
                "p95_ms": round(percentile(taken, 95), 1),
            }
            if name in ours:  # what Django's admin weighs is not ours
                found[name]["kb"] = round(browser.weight(path), 1)
            tell(name, found[name])
    return found


if __name__ == "__main__":
    main()

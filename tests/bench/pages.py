"""How long the pages take to make, and what they weigh, at 100,000 confirmations.

    ./hub bench pages [--quick]

Over real HTTP, from the server as it runs in production, to one person who has half of all rows and is an
operator, too. A page's time is from the request to its last byte, on a connection that is open. Its weight
is its own bytes and those of all its files, as they are before any compression.
"""

from __future__ import annotations

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
from typing import TYPE_CHECKING, Any

from tests.bench import common
from tests.bench.common import percentile, say

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from confirmhub.confirmations.models import Confirmation

ROWS = 100_000
BAR_MS, BAR_KB = 50, 40
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
    with connection.cursor() as cursor:
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
def served(listener: socket.socket) -> Iterator[int]:
    """The web process, on a socket that listens."""
    port: int = listener.getsockname()[1]
    command = [sys.executable, "-m", "confirmhub.ops.web", str(listener.fileno())]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command, cwd=common.ROOT, pass_fds=[listener.fileno()], stderr=log, stdout=log
        ) as process,
    ):
        try:
            yield port
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

    def times(self, path: str, number: int) -> list[float]:
        """Milliseconds that each of so many requests takes, after some that warm up."""
        for _ in range(10):
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
    options = common.arguments(__doc__)
    number = 60 if options.quick else 300
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as static:
        os.environ["PUBLIC_URL"] = f"http://localhost:{listener.getsockname()[1]}"
        os.environ["STATIC_ROOT"] = static
        with common.database():
            collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
            subprocess.run(collect, cwd=common.ROOT, check=True)
            found = measure(listener, number)
    slow = [name for name, page in found.items() if page["p95_ms"] > BAR_MS]
    heavy = [name for name, page in found.items() if page.get("kb", 0) > BAR_KB]
    common.figures(rows=ROWS, pages=found, slower_than_50_ms=slow, heavier_than_40_kb=heavy)


def measure(listener: socket.socket, number: int) -> dict[str, dict[str, Any]]:
    from django.contrib.auth.models import User

    person = User.objects.create_superuser("bench", password=secrets.token_hex(16))
    say(f"seeding {ROWS:,} rows")
    seed(person, ROWS)
    first, *waiting = ask(person)
    spend(person, first)
    ours = {
        "inbox": "/",
        "history": "/history",
        "search": "/history?q=draft-77",
        "confirm": f"/confirm/{waiting[0].id}",
        "receipt": f"/confirm/{first.id}",
    }
    queue = {"queue": QUEUE, "queue_row": f"{QUEUE}{first.id}/change/", "queue_found": f"{QUEUE}?q=draft-77"}
    found: dict[str, dict[str, Any]] = {}
    with served(listener) as port:
        browser = Browser(port, session(person))
        for name, path in (ours | queue).items():
            taken = browser.times(path, number)
            found[name] = {
                "p50_ms": round(percentile(taken, 50), 1),
                "p95_ms": round(percentile(taken, 95), 1),
            }
            if name in ours:  # what Django's admin weighs is not ours
                found[name]["kb"] = round(browser.weight(path), 1)
            say(f"{name}: {found[name]}")
    return found


if __name__ == "__main__":
    main()

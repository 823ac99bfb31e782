"""How long the dashboard takes at 1,000,000 confirmations of the last 30 days, each of its ranges.

    ./hub bench dashboard [--quick]

Over real HTTP, from the server as it runs in production. That all rows are of the longest range is the worst
that so many can be: spread over years, most of them are never looked at. Beside the time of a page, from the
request to its last byte, stands what the web process and what Postgres compute for one, which other programs
on the machine do not lengthen as they do the time.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from tests.bench import common, pages
from tests.bench.common import Bar, percentile, say, tell

if TYPE_CHECKING:
    from django.contrib.auth.models import User

BAR_MS = 200
RANGES = ("hour", "day", "week", "month")
PEOPLE = 40

# A third redeemed, a third denied, a third expired without an answer; of 40 people, 20 actions, 8 clients. As
# the owner can write them, past the guards: by the ledger it would take the day.
SEED = """
WITH row AS (
    INSERT INTO confirmations_confirmation (
        id, requester_client_id, requester_subject, audience, action, arguments, digest, summary, facts,
        fingerprint, question, tool_digest, view_digest, policy, mode, approvals_needed, self_approval,
        redeem_within, status, requested_at, decide_by, redeem_by, redeemed_at, redemption_key, settled_at,
        settled_reason, event_count, event_head, sealed_events, assurance, refusals, has_outcome)
    SELECT uuidv7(at - now()), 'https://agent' || n %% 8 || '.example/client.json', (n %% %(people)s)::text,
        'http://localhost:8000/mcp', 'action_' || n %% 20, '{"n":' || n || '}', sha256(n::text::bytea),
        '""', '[]', '', 'Do it?', '', sha256(n::text::bytea), 'built-in', 'confirm', 1, false,
        interval '1 hour', CASE n %% 3 WHEN 0 THEN 'redeemed' WHEN 1 THEN 'denied' ELSE 'expired' END,
        at, at + interval '10 min', CASE n %% 3 WHEN 0 THEN at + interval '1 hour' END,
        CASE n %% 3 WHEN 0 THEN at + interval '5 min' END, CASE n %% 3 WHEN 0 THEN n::text END,
        at + interval '5 min', '""', 2, sha256(''), 2, 'page', CASE WHEN n %% 97 = 0 THEN 1 ELSE 0 END,
        n %% 3 = 0 AND n %% 501 > 0
    FROM (SELECT n, now() - interval '30 days' * (1 - n::float8 / %(rows)s) AS at
          FROM generate_series(1, %(rows)s) AS n) AS asked
    RETURNING id, status, requested_at, refusals, requester_subject
), decision AS (
    INSERT INTO confirmations_decision (
        confirmation_id, approver_id, verdict, reason, view_digest, renderer, decided_at, assurance)
    SELECT id, %(first)s + requester_subject::int, CASE status WHEN 'denied' THEN 'deny' ELSE 'approve' END,
        '""', sha256(''), 'bench', requested_at + interval '1 s' * (hashtext(id::text) & 255), 'page'
    FROM row WHERE status <> 'expired' ORDER BY requested_at
)
INSERT INTO confirmations_event (confirmation_id, seq, kind, actor, at, detail, hash)
SELECT id, 1, 'refused', 'bench', requested_at, '{"code":"already_redeemed"}', sha256('')
FROM row WHERE refusals > 0
"""


def seed(rows: int) -> None:
    from django.contrib.auth.models import User
    from django.db import connection, transaction

    from confirmhub.database.base import patience

    people = User.objects.bulk_create(User(username=f"person {number}") for number in range(PEOPLE))
    tables = [f"confirmations_{name}" for name in ("confirmation", "decision", "event")]
    with patience(seconds=None), connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        with transaction.atomic():
            for table in tables:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            cursor.execute(SEED, {"rows": rows, "people": PEOPLE, "first": people[0].pk})
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for table in tables:
                cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        cursor.execute("VACUUM ANALYZE")


def servers_of_postgres() -> list[int]:
    """The processes that serve a connection each, but ours."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return [pid for (pid,) in cursor.fetchall()]


def measure(listener: socket.socket, person: User, number: int) -> dict[str, dict[str, Any]]:
    found = {}
    with pages.served(listener) as (port, pid):
        browser = pages.Browser(port, pages.session(person))
        for name in RANGES:
            path = f"/admin/dashboard?range={name}"
            browser.times(path, 0)
            serving = servers_of_postgres()
            before, queried = pages.computed(pid), sum(map(pages.computed, serving))
            taken = browser.times(path, number, warm_up=0)
            found[name] = {
                "computed_ms": round((pages.computed(pid) - before) * 1_000 / number, 1),
                "postgres_ms": round((sum(map(pages.computed, serving)) - queried) * 1_000 / number, 1),
                "p50_ms": round(percentile(taken, 50), 1),
                "p95_ms": round(percentile(taken, 95), 1),
            }
            tell(name, found[name])
    return found


def main() -> None:
    options = common.arguments(__doc__)
    rows, number = (100_000, 60) if options.quick else (1_000_000, 200)
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as static:
        os.environ["PUBLIC_URL"] = f"http://localhost:{listener.getsockname()[1]}"
        os.environ["STATIC_ROOT"] = static
        with common.database():
            from django.contrib.auth.models import User

            collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
            subprocess.run(collect, cwd=common.ROOT, check=True)
            person = User.objects.create_superuser("bench", password=secrets.token_hex(16))
            say(f"seeding {rows:,} rows")
            seed(rows)
            found = measure(listener, person, number)
    bars = (Bar(f"{name}, p95", page["p95_ms"], BAR_MS, "ms") for name, page in found.items())
    common.conclude(*bars, rows=rows, ranges=found)


if __name__ == "__main__":
    main()

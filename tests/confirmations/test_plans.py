"""What must hold however Postgres plans a statement: rows are found by their ids, and a limit is one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from confirmhub.confirmations import audit, dsn, ledger, rows, spending
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.ids import new_id
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result
from tests.bench.ledger import SEED
from tests.factories import make_pending

TABLE = "confirmations_confirmation"
NUMBER = 2_000

ACTION = Action(audience="https://hub.example/mcp", name="count", arguments={})
STATEMENTS = {
    "redeem": (
        rows.REDEEM,
        rows.redeem_parameters([rows.Redemption(new_id(), Principal("c", "1"), ACTION, "k" * 16)]),
    ),
    "report": (
        spending.REPORT,
        spending.report_parameters([spending.Report(new_id(), "k" * 16, "executor", Result.SUCCEEDED, "")]),
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["pending", "approved"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_rows_are_found_by_their_ids(name: str, status: str) -> None:
    with connection.cursor() as cursor:
        seed(cursor, status=status)
        for setting, value in re.findall(r"-c (enable_\w+)=(\w+)", dsn.keyed()):
            cursor.execute("SELECT set_config(%s, %s, true)", [setting, value])
        sql, values = STATEMENTS[name]
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", values)
        ((found,),) = cursor.fetchall()
    plan = found if isinstance(found, list) else json.loads(found)
    of_the_table = [node for node in nodes(plan[0]["Plan"]) if node.get("Relation Name") == TABLE]
    scans = {(node["Node Type"], node.get("Index Name")) for node in of_the_table} - {("ModifyTable", None)}

    assert scans == {("Index Scan", f"{TABLE}_pkey")}


@pytest.mark.django_db
def test_no_plan_seals_more_than_it_may(agent: Principal) -> None:
    for number in range(5):
        asked = make_pending(agent, action=replace(ACTION, arguments={"number": number}))
        ledger.cancel(confirmation_id=asked.id, requester=agent)
    with connection.cursor() as cursor:
        for way in ("hashjoin", "hashagg", "sort", "material"):
            cursor.execute(f"SET LOCAL enable_{way} = off")

    assert [audit.seal(limit=2) for _ in range(4)] == [2, 2, 1, 0]


def seed(cursor: Any, *, status: str) -> None:
    """So many rows of the requester, all of them in this status, which is all that the planner knows."""
    asked = "SELECT * FROM unnest(%(ids)s::uuid[], %(digests)s::bytea[]) AS asked (id, digest)"
    values = {
        "client": "c",
        "subject": "1",
        "audience": ACTION.audience,
        "ids": [new_id() for _ in range(NUMBER)],
        "digests": [number.to_bytes(32) for number in range(NUMBER)],
    }
    for table in (TABLE, "confirmations_event"):
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    cursor.execute(SEED.format(rows=asked, status="approved"), values)
    if status == "pending":
        cursor.execute(f"UPDATE {TABLE} SET status = 'pending', settled_at = NULL, redeem_by = NULL")
    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    for table in (TABLE, "confirmations_event"):
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    cursor.execute(f"ANALYZE {TABLE}")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)

"""What the role that serves may do with the rows, and what it may not, whatever the service asks of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import connection

from confirmhub.confirmations import audit, evidence, ledger
from confirmhub.confirmations.dsn import conninfo
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result
from confirmhub.ops import roles
from tests.confirmations.clock import make_overdue
from tests.factories import make_approved, make_pending, redeem
from tests.invariants import proves

pytestmark = pytest.mark.django_db(transaction=True)
SERVICE = f"confirmhub_service_of_{os.getpid()}"  # a role is the whole cluster's, which the workers share


@pytest.fixture
def as_service() -> Iterator[psycopg.Connection]:
    """A connection by which the service would reach this test's database."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP ROLE IF EXISTS {SERVICE}")
        cursor.execute(f"CREATE ROLE {SERVICE} LOGIN")
    roles.grant(owner_url=conninfo(), service=SERVICE)
    with psycopg.connect(conninfo(), user=SERVICE, autocommit=True) as found:
        yield found
    with connection.cursor() as cursor:
        cursor.execute(f"GRANT {SERVICE} TO CURRENT_USER")  # who made a role has not its rights, but may
        cursor.execute(f"DROP OWNED BY {SERVICE}")
        cursor.execute(f"DROP ROLE {SERVICE}")


@proves("log:append-only")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE confirmations_event SET actor = 'nobody'",
        "DELETE FROM confirmations_event",
        "TRUNCATE confirmations_event",
        "UPDATE confirmations_decision SET verdict = 'deny'",
        "DELETE FROM confirmations_decision",
        "UPDATE confirmations_outcome SET result = 'failed'",
        "DELETE FROM confirmations_confirmation",
        "UPDATE confirmations_checkpoint SET at = now()",
        "DELETE FROM confirmations_seal",
        "INSERT INTO confirmations_seal SELECT * FROM confirmations_seal",
        "INSERT INTO confirmations_checkpoint SELECT * FROM confirmations_checkpoint",
        "INSERT INTO confirmations_haltevent SELECT * FROM confirmations_haltevent",
        "ALTER TABLE confirmations_confirmation DISABLE TRIGGER USER",
        "DROP TRIGGER confirmations_guard ON confirmations_confirmation",
        "CREATE OR REPLACE FUNCTION confirmations_guard() RETURNS trigger LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE mine (id int)",
        "CREATE TEMP TABLE confirmations_decision (confirmation_id uuid, verdict text, view_digest bytea)",
        "SET session_replication_role = replica",
    ],
)
def test_the_service_cannot_rewrite_history_or_lift_a_guard(
    as_service: psycopg.Connection, agent: Principal, alice: User, statement: str
) -> None:
    receipt = redeem(make_approved(agent, alice), agent)
    ledger.report_outcome(receipt=receipt, result=Result.SUCCEEDED)
    as_service.execute("SELECT set_config('confirmhub.retiring', 'yes', false)")

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_service.execute(statement)


def test_the_service_cannot_let_go_of_what_no_checkpoint_sealed(
    as_service: psycopg.Connection, agent: Principal
) -> None:
    old = make_pending(agent)
    ledger.cancel(confirmation_id=old.id, requester=agent)
    make_overdue(old, requested_at=old.requested_at - timedelta(days=8))
    as_service.execute("UPDATE confirmations_confirmation SET sealed_events = event_count")

    [retired] = as_service.execute("SELECT confirmhub_retire(interval '7 days', 10)").fetchone()

    assert retired == 0
    assert old.events.count() == 2


def test_the_service_retires_what_is_old_through_the_one_function_for_it(
    as_service: psycopg.Connection, agent: Principal
) -> None:
    old = make_pending(agent)
    ledger.cancel(confirmation_id=old.id, requester=agent)
    audit.seal(limit=10)
    make_overdue(old, requested_at=old.requested_at - timedelta(days=8))

    [retired] = as_service.execute("SELECT confirmhub_retire(interval '7 days', 10)").fetchone()

    assert retired == 1
    assert not Confirmation.objects.exists()


def test_the_service_seals_and_writes_of_stops_through_what_does_it_for_the_owner(
    as_service: psycopg.Connection, agent: Principal, alice: User
) -> None:
    ledger.cancel(confirmation_id=make_pending(agent).id, requester=agent)
    as_service.execute(
        "INSERT INTO confirmations_halt"
        " (client_id, subject, action_pattern, action_like, reason, lift_reason, set_by_id)"
        " VALUES ('', '', '*', '%%', '\"Stop\"', '\"\"', %s)",
        [alice.pk],
    )

    [sealed] = as_service.execute("SELECT confirmhub_seal(10)").fetchone()

    assert sealed == 2
    with audit.records() as found:
        checked = evidence.check(found)
    assert (checked.halts, checked.unsealed_halts, checked.unsealed) == (1, 0, 0)


@proves("log:append-only")
@pytest.mark.parametrize(
    "statement", ["UPDATE django_admin_log SET change_message = ''", "DELETE FROM django_admin_log"]
)
def test_the_service_cannot_rewrite_who_edited_the_rules(
    as_service: psycopg.Connection, alice: User, statement: str
) -> None:
    rule = Rule.objects.create(name="r", rank=1, mode="confirm")
    LogEntry.objects.log_actions(alice.pk, [rule], CHANGE, change_message="mode: confirm -> allow")

    with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
        as_service.execute(statement)

    User.objects.create_user("temp").delete()  # who has edited nothing can still go
    assert LogEntry.objects.get().change_message == "mode: confirm -> allow"

"""The end of each test that commits leaves the database as `migrate` made it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from confirmhub.confirmations import ledger
from confirmhub.confirmations.principals import Principal
from tests import flushing
from tests.factories import decide, make_pending, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def rows() -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table that has any, but for the list of migrations."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        found = {}
        for table in sorted(tables):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found[table] = sorted(cursor.fetchall(), key=str)
    return {table: lines for table, lines in found.items() if lines and table != "django_migrations"}


@pytest.fixture
def made() -> Iterator[dict[str, list[tuple[object, ...]]]]:
    """What `migrate` made, whatever the test before has left."""
    flushing.flush()
    return rows()


def test_no_row_of_a_test_is_left(
    made: dict[str, list[tuple[object, ...]]], alice: User, agent: Principal
) -> None:
    decide(make_pending(agent), alice)
    ledger.halt(operator=make_user("operator", is_superuser=True), reason="drill")  # kept by triggers, too
    assert len(rows()) > len(made)

    flushing.flush()

    assert rows() == made
    assert set(made) == set(flushing.MADE)
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE tgenabled = 'D'")
        assert cursor.fetchall() == []  # the rules hold again


def test_what_a_test_has_changed_of_what_migrate_made_is_put_back(
    made: dict[str, list[tuple[object, ...]]],
) -> None:
    Group.objects.get(name="Operators").permissions.clear()
    Permission.objects.filter(codename="add_halt").update(name="another")
    Group.objects.create(name="more")
    ContentType.objects.filter(app_label="sessions").delete()
    assert rows() != made

    flushing.flush()

    assert rows() == made

"""Whatever is killed while a question is open: it can still be decided, and the yes spent once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.hosts import Host, connected
from tests.e2e.person import RECORD, Person
from tests.e2e.product import Product
from tests.ops.service import alive, wait_until

STATUS = "SELECT status FROM confirmations_confirmation WHERE id = %s"
SIGNS_OF_LIFE = "SELECT name FROM ops_heartbeat WHERE at > %s ORDER BY name"


@pytest.fixture(scope="module")
def host(product: Product, person: Person) -> Iterator[Host]:
    """A host that stays signed in through all of it."""
    with connected("python", product, person, elicitation="none") as host:
        yield host


@pytest.mark.parametrize("part", ["web", "worker", "postgres", "supervisor"])
def test_an_open_question_outlives_a_kill(product: Product, person: Person, host: Host, part: str) -> None:
    file = product.file(f"killed {part}.txt")
    host.call("delete_file", path=str(file))
    asked = host.next_but_sign_ins(person)["data"]
    assert asked["status"] == "waiting_for_person"

    if part == "supervisor":
        kill_all_by_their_supervisor(product)
        product.up_again()
    else:
        kill_and_await(product, part)

    assert product.rows(STATUS, asked["confirmation_id"]) == [("pending",)]
    person.approve(asked["page"], path=str(file), check=asked["check"])
    host.call("redeem_confirmation", confirmation_id=asked["confirmation_id"])
    assert host.next()["data"]["status"] == "done"
    assert not file.exists()

    file.write_text("This one was never asked about.\n")
    host.call("redeem_confirmation", confirmation_id=asked["confirmation_id"])
    assert "already redeemed" in host.next()["text"]
    assert file.exists()
    assert person.read_receipt(asked["page"]) == RECORD
    # Nothing that was killed has left something behind that nobody looks after.
    wait_until(lambda: not orphans(product))


def orphans(product: Product) -> set[int]:
    """What runs on the state folder and does not descend from the supervisor."""
    found = set(product.processes())
    return found - {product.service.process.pid, *product.service.everything()}


def kill_and_await(product: Product, part: str) -> None:
    """Kill a part, and wait until the supervisor has another one and all is well."""
    service = product.service
    before = service.parts()[part]
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not alive(before))
    wait_until(lambda: service.parts().get(part, before) != before)
    wait_until(product.answers)
    wait_until(service.healthy)
    # Health believes a sign of life for a while. These are to be of now: worker and beat have come
    # back, or have found the database again.
    [(now,)] = product.rows("SELECT clock_timestamp()")
    wait_until(lambda: product.rows(SIGNS_OF_LIFE, now) == [("beat",), ("worker",)])


def kill_all_by_their_supervisor(product: Product) -> None:
    """Kill the supervisor, and see all that it started go with it."""
    below = product.service.everything()
    assert len(below) > 4
    product.service.process.kill()
    product.service.wait_for_end()
    wait_until(lambda: not product.processes())
    assert not any(map(alive, below))
    assert Path(product.state / "pg/PG_VERSION").exists()

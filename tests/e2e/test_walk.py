"""The main job, whole: a host asks to delete a file, a person allows it, it is done, and once."""

from __future__ import annotations

import pytest

from tests.e2e.hosts import connected
from tests.e2e.person import RECORD, Person
from tests.e2e.product import Product
from tests.ops.service import wait_until

ASKED = "SELECT kind, actor FROM confirmations_event WHERE confirmation_id = %s ORDER BY seq"
CLIENT = "SELECT requester_client_id FROM confirmations_confirmation WHERE id = %s"


@pytest.mark.parametrize(
    ("kind", "elicitation", "version"),
    [
        ("python", "url", "2026-07-28"),
        ("python", "none", "2026-07-28"),
        ("typescript", "url", "2026-07-28"),
        ("typescript", "none", "2025-11-25"),
    ],
)
def test_a_file_is_deleted_once_when_a_person_allows_it(
    product: Product, person: Person, kind: str, elicitation: str, version: str
) -> None:
    file = product.file(f"{kind} {elicitation}.txt")

    with connected(kind, product, person, elicitation=elicitation) as host:
        assert host.version == version
        # The scope that deletes is not among those of the first sign-in: the host asks for it now.
        host.call("delete_file", path=str(file))
        asked = host.next_but_sign_ins(person)
        assert file.exists()
        if elicitation == "url":
            assert asked["event"] == "ask", asked
            page, said = asked["url"], asked["message"]
        else:
            assert asked["data"]["status"] == "waiting_for_person", asked
            page, said = asked["data"]["page"], asked["text"]
            assert page in said
        confirmation = page.rpartition("/")[2]
        check = said.partition("check value ")[2][: len("3c0f 8454")]

        person.approve(page, path=str(file), check=check)
        if elicitation == "none":
            host.call("redeem_confirmation", confirmation_id=confirmation)
        done = host.next()

        assert done["event"] == "result", done
        assert not done["refused"], done
        assert done["data"]["status"] == "done"
        assert done["text"].startswith(f"Deleted {file}, ")
        assert not file.exists()

        # Another file of that name, and the same yes again.
        file.write_text("This one was never asked about.\n")
        host.call("redeem_confirmation", confirmation_id=confirmation)
        again = host.next()

        assert again["refused"]
        assert "already redeemed" in again["text"]
        assert file.exists()

    kinds = ["requested", "approve", "redeemed", "succeeded", "refused"]
    [(client,)] = product.rows(CLIENT, confirmation)
    agent, admin = f"client {client} for user 1", "user 1"
    actors = [agent, admin, agent, "executor", agent]
    assert product.rows(ASKED, confirmation) == list(zip(kinds, actors, strict=True))
    assert person.read_receipt(page) == RECORD
    assert file.exists()


def test_the_person_is_told_by_mail_where_to_decide(product: Product, person: Person) -> None:
    file = product.file("told by mail.txt")
    with connected("python", product, person, elicitation="none") as host:
        host.call("delete_file", path=str(file))
        page = host.next_but_sign_ins(person)["data"]["page"]

    mails = product.state / "mail"
    wait_until(lambda: any(page in mail.read_text() for mail in mails.iterdir()))

    [told] = [mail for mail in mails.iterdir() if page in mail.read_text()]
    assert f"To: {product.administrator}@localhost" in told.read_text()
    assert file.exists()

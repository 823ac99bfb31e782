"""What a message says, and what it must never say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from confirmhub.confirmations import ledger, queries
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode
from confirmhub.notifications import messages
from confirmhub.oauth import clients, services
from confirmhub.oauth.models import Client
from tests.bridge.hosts import make_token
from tests.confirmations.test_rules import make_rule

pytestmark = pytest.mark.django_db

LIE = "All is well.\r\nBcc: everyone@example.net\r\n\r\nhttps://evil.example/approve"


def ask(
    subject: User, *, arguments: dict[str, Any], summary: str = "", client_id: str = "agent-1"
) -> Confirmation:
    requester = Principal(client_id=client_id, subject=str(subject.pk))
    action = Action(audience="http://localhost:8000/mcp", name="delete_file", arguments={**arguments})
    asked = ledger.request(requester=requester, action=action, summary=summary)
    return queries.get_for_requester(confirmation_id=asked.id, requester=requester)


def compose(confirmation: Confirmation, *, to: User, kind: str = "asked") -> messages.Message:
    notice = LeasedNotice(7, kind, confirmation.id, to.pk, None, 1)
    return messages.compose(notice=notice, confirmation=confirmation, recipient=to)


def test_a_message_links_to_the_page_and_carries_nothing_else_in_the_link(alice: User) -> None:
    confirmation = ask(alice, arguments={"path": "/srv/plan.txt"})

    message = compose(confirmation, to=alice)

    link = f"http://localhost:8000/confirm/{confirmation.id}"
    assert link in message.text.splitlines()
    assert f'<a href="{link}">{link}</a>' in message.html
    assert message.html.count("href") == 1


def test_a_message_tells_the_one_who_asked_from_the_one_who_reads(alice: User, bob: User) -> None:
    confirmation = ask(alice, arguments={"path": "/srv/plan.txt"})

    message = compose(confirmation, to=bob)

    assert "On behalf of: alice" in message.text.splitlines()
    assert "signed in as bob:" in message.text


def test_a_message_says_until_when_with_the_time_zone(alice: User) -> None:
    confirmation = ask(alice, arguments={"path": "/srv/plan.txt"})

    message = compose(confirmation, to=alice)

    assert f"Decide by: {confirmation.decide_by:%Y-%m-%d %H:%M:%S} UTC" in message.text.splitlines()


def test_what_the_agent_wrote_is_in_no_part_of_a_message(alice: User) -> None:
    confirmation = ask(alice, arguments={"path": LIE, "password": "hunter2"}, summary=LIE)

    message = compose(confirmation, to=alice)

    for part in (message.subject, message.text, message.html):
        assert "evil.example" not in part
        assert "hunter2" not in part


def test_a_subject_is_our_words_and_the_check_value(alice: User) -> None:
    confirmation = ask(alice, arguments={"path": LIE}, summary=LIE)

    message = compose(confirmation, to=alice)

    head = bytes(confirmation.view_digest).hex()
    check = f"{head[:4]} {head[4:8]}"
    assert message.subject == f"confirmhub: A confirmation waits for your decision ({check})"
    assert f"Check value: {check}" in message.text.splitlines()
    assert check in message.html


def test_a_rehearsal_is_asked_by_ourselves(alice: User) -> None:
    message = compose(ask(alice, arguments={}, client_id="confirmhub:try"), to=alice)

    assert "Who asks: confirmhub itself" in message.text.splitlines()


def test_a_hostile_name_is_shown_as_on_every_page(bob: User) -> None:
    mallory = User.objects.create_user("mal\u202elory<b>", "mallory@example.org")
    confirmation = ask(mallory, arguments={"path": "/srv/plan.txt"})

    message = compose(confirmation, to=bob)

    assert "On behalf of: mal⟨U+202E⟩lory<b>" in message.text.splitlines()
    assert "mal⟨U+202E⟩lory&lt;b&gt;" in message.html


@pytest.mark.parametrize(
    ("name", "shown"), [("Payments", "Payments"), ("Pay\u202ements", "Pay⟨U+202E⟩ments"), ("", "client:{}")]
)
def test_a_service_that_asks_for_nobody_is_named_as_its_operators_called_it(
    bob: User, name: str, shown: str
) -> None:
    service, _ = services.create(name=name, audience="https://payments.example/api")
    approvers = Group.objects.create(name="payers")
    approvers.user_set.add(bob)
    make_rule(Mode.APPROVE, approver_group=approvers)
    requester = Principal(client_id=service.client_id, subject=f"client:{service.client_id}")
    action = Action(audience="https://payments.example/api", name="pay", arguments={})
    asked = ledger.request(requester=requester, action=action)
    found = queries.get_for_requester(confirmation_id=asked.id, requester=requester)

    message = compose(found, to=bob)

    said = shown.format(service.client_id)
    assert f"On behalf of: {said}" in message.text.splitlines()
    assert message.data["on_behalf_of"] == said


def test_a_program_that_is_no_service_lends_no_name(alice: User, bob: User) -> None:
    host = make_token(alice, resource="http://localhost:8000/mcp") and Client.objects.get()
    assert not clients.service_names(subjects={f"client:{host.client_id}", str(alice.pk), "client:x", ""})


def test_a_repeated_message_has_the_same_identity(alice: User) -> None:
    confirmation = ask(alice, arguments={"path": "/srv/plan.txt"})

    assert compose(confirmation, to=alice).id == compose(confirmation, to=alice).id
    assert compose(confirmation, to=alice).id == f"<{confirmation.id}.7@localhost>"


def test_a_settled_confirmation_is_told_by_its_status(alice: User) -> None:
    confirmation = ask(alice, arguments={"path": "/srv/plan.txt"})
    requester = Principal(client_id="agent-1", subject=str(alice.pk))
    ledger.cancel(confirmation_id=confirmation.id, requester=requester)
    settled = queries.get_for_requester(confirmation_id=confirmation.id, requester=requester)

    message = compose(settled, to=alice, kind="settled")

    assert "A confirmation was withdrawn" in message.subject
    assert "decide, signed in" not in message.text


# --- arguments, where the operator lets them out


@pytest.fixture
def open_arguments(settings: pytest.FixtureRequest) -> None:
    settings.NOTICE_ARGUMENTS = True


SECRETS = {
    "password": "hunter2",
    "DB_PassWord": "hunter2",
    "api-key": "hunter2",
    "pass\u200bword": "hunter2",
    "headers": {"deep": [{"Authorization": "hunter2"}]},
    "access_token": "hunter2",
}


@pytest.mark.parametrize("name", SECRETS)
def test_an_argument_with_a_secrets_name_is_hidden_wherever_it_stands(
    alice: User, open_arguments: None, name: str
) -> None:
    confirmation = ask(alice, arguments={"path": "/srv/plan.txt", name: SECRETS[name]})

    message = compose(confirmation, to=alice)

    everything = message.text + message.html + json.dumps(message.data)
    assert "hunter2" not in everything
    assert "\u27e8hidden here, shown on the page\u27e9" in message.text
    assert "Argument: path = /srv/plan.txt" in message.text.splitlines()


def test_arguments_are_shown_as_on_every_page_and_cut_where_one_can_tell(
    alice: User, open_arguments: None
) -> None:
    confirmation = ask(alice, arguments={"path": "/srv/\u202ecod.exe", "note": "A" * 1_000, "n": {"a": [1]}})

    text = compose(confirmation, to=alice).text

    assert "\u202e" not in text
    assert "U+202E" in text
    assert "more, sha256" in text
    assert 'Argument: n = {"a": [1]}' in text.splitlines()


def test_of_many_arguments_the_rest_is_counted(alice: User, open_arguments: None) -> None:
    confirmation = ask(alice, arguments={f"a{n:02}": "x" for n in range(12)})

    lines = compose(confirmation, to=alice).text.splitlines()

    assert len([line for line in lines if line.startswith("Argument: a")]) == 8
    assert "Argument: \u27e84 more on the page\u27e9" in lines


def test_no_argument_can_spell_what_stands_for_a_hidden_one(alice: User, open_arguments: None) -> None:
    confirmation = ask(alice, arguments={"path": "\u27e8hidden here, shown on the page\u27e9"})

    assert "path = \u27e8hidden" not in compose(confirmation, to=alice).text

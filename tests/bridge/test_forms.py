"""Form elicitation: the host asks and answers for the person, where the policy takes its word."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.states import Assurance, Mode, Status, Verdict
from mcp_bridge import rounds
from tests.bridge.hosts import call_message, decide_at, post
from tests.bridge.test_drift import rewrite
from tests.confirmations.clock import make_overdue
from tests.factories import kinds_of_events

FORM = {"form": {}}
ALLOW = {"action": "accept", "content": {"decision": "allow"}}
DENY = {"action": "accept", "content": {"decision": "deny"}}


@pytest.fixture
def by_host(transactional_db: None) -> Rule:
    """The policy takes a host's word."""
    return Rule.objects.create(name="quick", rank=1, mode=Mode.CONFIRM, assurance=Assurance.HOST)


class Host:
    """A host that declares some kind of elicitation, and deletes the file."""

    def __init__(self, url: str, token: str, file: Path, elicitation: dict[str, Any]) -> None:
        self.url, self.token, self.elicitation = url, token, elicitation
        self.arguments = {"path": str(file)}

    def __call__(self, answer: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        version = more.pop("version", "2026-07-28")
        if answer is not None:
            more["inputResponses"] = {"form": answer}
        message = call_message("delete_file", self.arguments, elicitation=self.elicitation, **more)
        found: dict[str, Any] = post(self.url, message, token=self.token, version=version).json()["result"]
        return found

    def asked(self) -> dict[str, Any]:
        """The form, and the state beside it."""
        result = self()
        assert list(result["inputRequests"]) == ["form"], result
        return result

    def answered(self, answer: dict[str, Any]) -> dict[str, Any]:
        return self(answer, requestState=self.asked()["requestState"])


@pytest.fixture
def agent_host(url: str, token: str, file: Path, by_host: Rule) -> Host:
    return Host(url, token, file, FORM)


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def the_one() -> Confirmation:
    return Confirmation.objects.get()


def test_the_form_shows_all_of_it_and_asks_for_one_word(agent_host: Host, file: Path) -> None:
    params = agent_host.asked()["inputRequests"]["form"]["params"]

    assert params["mode"] == "form"
    assert params["requestedSchema"] == {
        "type": "object",
        "properties": {"decision": {"type": "string", "title": "Your answer", "enum": ["deny", "allow"]}},
        "required": ["decision"],
    }
    seal = bytes(the_one().view_digest).hex()
    facts = "\n".join(f"  {label}: {value}" for label, value in the_one().fact_items)
    assert params["message"] == (
        f'Delete this file?\nAction: delete_file\nArguments:\n  path: "{file}"\nAs it is now:\n{facts}\n'
        f"Check value {seal[:4]} {seal[4:8]}. To allow means exactly this, once."
    )
    assert "http" not in params["message"]


def test_a_yes_in_the_form_is_done_and_recorded_as_the_hosts_word(
    agent_host: Host, file: Path, alice: User
) -> None:
    done = agent_host.answered(ALLOW)

    assert text(done) == f"Deleted {file}, 18 bytes."
    decision = the_one().decisions.get()
    assert (decision.approver, decision.verdict) == (alice, Verdict.APPROVE)
    assert decision.assurance == Assurance.HOST
    assert bytes(decision.view_digest) == bytes(the_one().view_digest)
    assert kinds_of_events(the_one()) == ["requested", "approve", "redeemed", "succeeded"]
    assert not file.exists()


def test_a_no_in_the_form_denies(agent_host: Host, file: Path) -> None:
    result = agent_host.answered(DENY)

    assert "The person declined. Nothing was done" in text(result)
    assert the_one().status == Status.DENIED
    assert the_one().decisions.get().assurance == Assurance.HOST
    assert file.exists()


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_form_that_is_closed_closes_the_question(agent_host: Host, file: Path, action: str) -> None:
    result = agent_host.answered({"action": action})

    assert "The person declined. Nothing was done" in text(result)
    assert (the_one().status, file.exists()) == (Status.CANCELLED, True)


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"decision": True},
        {"decision": "yes"},
        {"decision": "ALLOW"},
        {"decision": ["allow"]},
        {"confirmed": True},
        {"approve": "allow"},
    ],
)
def test_an_answer_that_is_none_of_the_two_is_asked_for_again(
    agent_host: Host, file: Path, content: dict[str, Any] | None
) -> None:
    state = agent_host.asked()["requestState"]
    answer = {"action": "accept"} if content is None else {"action": "accept", "content": content}

    again = agent_host(answer, requestState=state)

    # The protocol itself refuses what no form can hold.
    assert list(again["inputRequests"]) == ["form"]
    assert (the_one().status, file.exists()) == (Status.PENDING, True)


def test_a_host_that_never_answers_gets_the_link_before_it_gives_up(agent_host: Host) -> None:
    result = agent_host.asked()
    asked = 1
    while result["resultType"] == "input_required":
        result = agent_host(requestState=result["requestState"])
        asked += 1

    assert asked == rounds.LAST + 1
    assert result["structuredContent"]["status"] == "waiting_for_person"
    assert result["structuredContent"]["page"] in text(result)


def test_an_answer_without_a_state_is_not_believed(agent_host: Host, file: Path) -> None:
    agent_host.asked()

    for state in ({}, {"requestState": None}):
        again = agent_host(ALLOW, **state)
        assert list(again["inputRequests"]) == ["form"]

    assert (the_one().status, file.exists()) == (Status.PENDING, True)


def test_an_answer_under_another_name_is_not_believed(agent_host: Host, file: Path) -> None:
    state = agent_host.asked()["requestState"]

    again = agent_host(requestState=state, inputResponses={"page": ALLOW, "confirm": ALLOW})

    assert list(again["inputRequests"]) == ["form"]
    assert (the_one().status, file.exists()) == (Status.PENDING, True)


def test_a_form_answer_to_a_page_is_not_believed(
    impatient: None, url: str, token: str, file: Path, by_host: Rule
) -> None:
    host = Host(url, token, file, {"url": {}})
    state = host()["requestState"]

    result = host(ALLOW, requestState=state)

    assert (result["resultType"], list(result)) == ("input_required", ["requestState", "resultType", "_meta"])
    assert the_one().status == Status.PENDING


def test_an_old_request_with_a_forms_answer_is_not_believed(
    impatient: None, agent_host: Host, file: Path
) -> None:
    state = agent_host.asked()["requestState"]

    result = agent_host(ALLOW, requestState=state, version="2025-11-25")

    assert result["structuredContent"]["status"] == "waiting_for_person"
    assert (the_one().status, file.exists()) == (Status.PENDING, True)


@pytest.mark.parametrize("elicitation", [{}, {"form": {}}])
def test_both_ways_to_declare_forms_count(
    url: str, token: str, file: Path, by_host: Rule, elicitation: dict[str, Any]
) -> None:
    assert Host(url, token, file, elicitation).asked()


def test_a_host_that_opens_pages_too_is_given_the_page(
    url: str, token: str, file: Path, by_host: Rule
) -> None:
    result = Host(url, token, file, {"form": {}, "url": {}})()

    assert list(result["inputRequests"]) == ["page"]


def test_where_the_policy_wants_the_page_a_form_is_never_shown_nor_its_answer_believed(
    impatient: None, url: str, token: str, file: Path
) -> None:
    host = Host(url, token, file, FORM)

    first = host()
    second = host(ALLOW)

    for result in (first, second):
        assert result["structuredContent"]["status"] == "waiting_for_person"
        assert result["structuredContent"]["page"] in text(result)
    assert the_one().assurance == Assurance.PAGE
    assert (the_one().status, file.exists()) == (Status.PENDING, True)


def test_a_lost_answer_is_told_again_and_nothing_is_done_twice(agent_host: Host, file: Path) -> None:
    state = agent_host.asked()["requestState"]
    message = call_message(
        "delete_file",
        agent_host.arguments,
        elicitation=FORM,
        requestState=state,
        inputResponses={"form": ALLOW},
    )
    first, again = (post(agent_host.url, message, token=agent_host.token).json()["result"] for _ in range(2))

    assert not first["structuredContent"]["replayed"]
    assert again["structuredContent"]["replayed"]
    assert text(again) == f"This was done before, and was not done again: Deleted {file}, 18 bytes."


def test_a_second_answer_is_refused_even_when_the_file_is_there_again(agent_host: Host, file: Path) -> None:
    state = agent_host.asked()["requestState"]
    agent_host(ALLOW, requestState=state)
    file.write_text("quarterly numbers\n")

    assert "was already redeemed" in text(agent_host(ALLOW, requestState=state))
    assert file.exists()


def test_what_was_decided_on_the_page_meanwhile_stands(agent_host: Host, file: Path) -> None:
    state = agent_host.asked()["requestState"]
    decide_at(f"/{the_one().id}", Verdict.DENY, reason="keep it")

    result = agent_host(ALLOW, requestState=state)

    assert "was denied" in text(result)
    assert "keep it" in text(result)
    assert file.exists()


def test_a_no_in_the_form_takes_a_yes_on_the_page_back(agent_host: Host, file: Path) -> None:
    state = agent_host.asked()["requestState"]
    decide_at(f"/{the_one().id}")

    result = agent_host(DENY, requestState=state)

    assert "The person declined" in text(result)
    assert (the_one().status, file.exists()) == (Status.REVOKED, True)


def test_a_form_that_is_answered_too_late_says_so(agent_host: Host, file: Path) -> None:
    state = agent_host.asked()["requestState"]
    asked_at = the_one().requested_at
    make_overdue(the_one(), requested_at=asked_at - dt.timedelta(hours=1), decide_by=asked_at)

    assert "has expired. Ask again" in text(agent_host(ALLOW, requestState=state))
    assert file.exists()


def test_the_answer_is_bound_to_the_file(agent_host: Host, file: Path) -> None:
    state = agent_host.asked()["requestState"]
    rewrite(file)

    result = agent_host(ALLOW, requestState=state)

    assert "The target is not what it was when the question was asked." in text(result)
    assert "Call delete_file again with the same arguments: the person is shown what changed." in text(result)
    assert (the_one().status, file.read_text()) == (Status.REVOKED, "quarterly numberz\n")


def test_the_next_question_tells_what_changed_since_it_was_allowed(agent_host: Host, file: Path) -> None:
    state = agent_host.asked()["requestState"]
    was = dict(the_one().fact_items)
    rewrite(file)
    agent_host(ALLOW, requestState=state)

    message = agent_host.asked()["inputRequests"]["form"]["params"]["message"]

    newest = Confirmation.objects.latest("requested_at")
    now = dict(newest.fact_items)
    changed = message[message.index("Changed") : message.index("As it is now")]
    assert newest.status == Status.PENDING
    assert changed == (
        f"Changed since it was allowed before:\n  Content: {now['Content']} (was {was['Content']})\n"
    )
    done = agent_host.answered(ALLOW)
    assert text(done) == f"Deleted {file}, 18 bytes."


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a\u202etxt.exe", id="turned-around"),
        pytest.param("re\u200bport", id="with-nothing-in-it"),
        pytest.param("р" + "eport", id="of-two-alphabets"),
        pytest.param("/".join(["x" * 250] * 8), id="too-long-to-show-whole"),
    ],
)
def test_what_a_form_cannot_show_whole_and_clearly_goes_to_the_page(
    url: str, token: str, root: Path, by_host: Rule, name: str
) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")

    result = Host(url, token, file, FORM)()

    assert result["structuredContent"]["status"] == "waiting_for_person"
    assert result["structuredContent"]["page"] in text(result)


def test_a_name_cannot_forge_a_line_of_the_form(url: str, token: str, root: Path, by_host: Rule) -> None:
    file = root / "a\nAction: nothing at all\nCheck value 0000 0000"
    file.write_text("x")

    result = Host(url, token, file, FORM)()

    lines = result["inputRequests"]["form"]["params"]["message"].splitlines()
    assert [line for line in lines if line.startswith("Action")] == ["Action: delete_file"]
    assert len([line for line in lines if line.startswith("Check value")]) == 1

"""The hub's own tools: an agent asks, waits, spends the yes, acts elsewhere, and reports."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.states import Status, Verdict
from tests.bridge.hosts import call_message, decide_at, make_token, post
from tests.factories import decide, kinds_of_events, make_user

PAY = {"action": "payments.transfer", "arguments": {"to": "DE89370400440532013000", "cents": 1250}}


class Agent:
    """Calls tools with one token."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = post(self.url, call_message(tool, arguments), token=self.token).json()["result"]
        assert not answer["isError"], answer
        found: dict[str, Any] = answer["structuredContent"]
        return found

    def refused(self, tool: str, **arguments: Any) -> str:
        answer = post(self.url, call_message(tool, arguments), token=self.token).json()["result"]
        assert answer["isError"], answer
        return str(answer["content"][0]["text"])


@pytest.fixture
def agent_of_alice(url: str, token: str) -> Agent:
    return Agent(url, token)


def test_the_whole_walk(agent_of_alice: Agent) -> None:
    call = agent_of_alice
    asked = call("request_confirmation", **PAY, summary="The rent is due.")
    identity = {"confirmation_id": asked["confirmation_id"]}
    decide_at(asked["page"])
    seen = call("get_confirmation", **identity, wait_seconds=45)
    spent = call("redeem_confirmation", **identity, **PAY)
    reported = call("report_outcome", **identity, result="succeeded", detail="Transfer 4711.")
    after = call("get_confirmation", **identity)

    assert [asked["status"], seen["status"], spent["status"], after["status"]] == [
        "pending",
        "approved",
        "redeemed",
        "redeemed",
    ]
    assert spent["message"].startswith("Redeemed. Do exactly this action now, once")
    assert reported["message"] == "Recorded: succeeded."
    assert after["result"] == "succeeded"
    assert json.loads(asked["arguments"]) == PAY["arguments"]
    assert kinds_of_events(Confirmation.objects.get()) == ["requested", "approve", "redeemed", "succeeded"]


def test_a_wait_ends_with_the_decision(agent_of_alice: Agent) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)
    identity = {"confirmation_id": asked["confirmation_id"]}

    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting = pool.submit(agent_of_alice, "get_confirmation", **identity, wait_seconds=45)
        decide_at(asked["page"], Verdict.DENY, reason="too much")
        assert waiting.result(timeout=20)["next"].endswith("The reason given, word for word: too much")


def test_the_same_request_is_the_same_confirmation(agent_of_alice: Agent) -> None:
    first = agent_of_alice("request_confirmation", **PAY)
    second = agent_of_alice("request_confirmation", **PAY)

    assert first == second


def test_a_second_redemption_is_refused_and_a_repeated_one_is_not(agent_of_alice: Agent) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)
    decide_at(asked["page"])
    spend = {"confirmation_id": asked["confirmation_id"], **PAY}

    first = agent_of_alice("redeem_confirmation", **spend, redemption_key="attempt-1")
    again = agent_of_alice("redeem_confirmation", **spend, redemption_key="attempt-1")

    assert (first["replayed"], again["replayed"]) == (False, True)
    assert "Do not act again if you acted then" in again["message"]
    assert "already redeemed" in agent_of_alice.refused("redeem_confirmation", **spend)
    assert "already redeemed" in agent_of_alice.refused(
        "redeem_confirmation", **spend, redemption_key="attempt-2"
    )


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"action": "payments.refund"}, id="another-name"),
        pytest.param({"arguments": PAY["arguments"] | {"cents": 1251}}, id="one-cent-more"),
        pytest.param({"arguments": PAY["arguments"] | {"cents": 1250.0}}, id="another-type"),
        pytest.param({"arguments": PAY["arguments"] | {"note": ""}}, id="one-argument-more"),
    ],
)
def test_a_yes_to_one_action_is_none_to_another(agent_of_alice: Agent, other: dict[str, Any]) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)
    decide_at(asked["page"])
    spend = {"confirmation_id": asked["confirmation_id"], **PAY, **other}

    assert "The action is not the one that was asked for" in agent_of_alice.refused(
        "redeem_confirmation", **spend
    )
    assert Confirmation.objects.get().status == Status.APPROVED


def test_the_action_must_be_named_again(agent_of_alice: Agent) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)
    decide_at(asked["page"])

    assert "Give the action and the arguments" in agent_of_alice.refused(
        "redeem_confirmation", confirmation_id=asked["confirmation_id"]
    )


@pytest.mark.parametrize("identity", ["", " ", "c-4711", "00000000-0000-4000-8000-00000000000", None, 0, []])
@pytest.mark.parametrize(
    "tool", ["get_confirmation", "redeem_confirmation", "cancel_confirmation", "report_outcome"]
)
def test_an_empty_or_malformed_id_is_refused(agent_of_alice: Agent, tool: str, identity: object) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)
    decide_at(asked["page"])
    more = {"redeem_confirmation": PAY, "report_outcome": {"result": "failed"}}.get(tool, {})

    assert "UUID" in agent_of_alice.refused(tool, confirmation_id=identity, **more)
    assert Confirmation.objects.get().status == Status.APPROVED


def test_looking_at_a_yes_does_not_spend_it(agent_of_alice: Agent) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)
    identity = {"confirmation_id": asked["confirmation_id"]}
    decide_at(asked["page"])

    looks = [agent_of_alice("get_confirmation", **identity)["status"] for _ in range(3)]

    assert looks == ["approved"] * 3
    assert not agent_of_alice("redeem_confirmation", **identity, **PAY)["replayed"]


def test_an_undecided_one_is_waited_for(impatient: None, agent_of_alice: Agent) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)
    found = agent_of_alice("redeem_confirmation", confirmation_id=asked["confirmation_id"], **PAY)

    assert found["status"] == "waiting_for_person"
    assert asked["page"] in found["message"]


def test_a_question_is_taken_back(agent_of_alice: Agent) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)
    identity = {"confirmation_id": asked["confirmation_id"]}
    agent_of_alice("cancel_confirmation", **identity)

    assert "was cancelled" in agent_of_alice.refused("redeem_confirmation", **identity, **PAY)
    assert "was cancelled" in agent_of_alice.refused("cancel_confirmation", **identity)


def test_an_outcome_needs_a_redemption(agent_of_alice: Agent) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)

    assert "It was not redeemed" in agent_of_alice.refused(
        "report_outcome", confirmation_id=asked["confirmation_id"], result="succeeded"
    )


def test_another_outcome_cannot_replace_the_first(agent_of_alice: Agent) -> None:
    asked = agent_of_alice("request_confirmation", **PAY)
    identity = {"confirmation_id": asked["confirmation_id"]}
    decide_at(asked["page"])
    agent_of_alice("redeem_confirmation", **identity, **PAY)
    agent_of_alice("report_outcome", **identity, result="succeeded")
    agent_of_alice("report_outcome", **identity, result="succeeded")

    assert "Another outcome was reported" in agent_of_alice.refused(
        "report_outcome", **identity, result="failed"
    )


def test_the_list_is_the_requesters_own_newest_first(url: str, agent_of_alice: Agent, bob: User) -> None:
    for cents in (1, 2, 3):
        agent_of_alice("request_confirmation", **PAY | {"arguments": {"cents": cents}})
    others = Agent(url, make_token(bob, resource=f"{url}/mcp"))

    found = agent_of_alice("list_confirmations", limit=2)["confirmations"]

    assert [row["arguments"] for row in found] == ['{"cents":3}', '{"cents":2}']
    assert others("list_confirmations") == {"confirmations": []}


def test_the_name_of_a_tool_here_cannot_be_asked_for(agent_of_alice: Agent) -> None:
    """Or an agent could have it confirmed without the tool's own look at the target."""
    refusal = agent_of_alice.refused("request_confirmation", action="delete_file", arguments={"path": "/x"})

    assert refusal == "delete_file is a tool here. Call it itself; it asks the person and does it."


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param({"action": "1st"}, "An action's name is a letter", id="name"),
        pytest.param(
            {"arguments": '{"n":9007199254740992}'}, "send it as a string", id="integer-beyond-doubles"
        ),
        pytest.param({"arguments": '{"a":1,"a":2}'}, "same key twice", id="object-in-a-string"),
        pytest.param({"arguments": "[]"}, "object", id="list-in-a-string"),
        pytest.param({"arguments": {"text": "x" * 5000}}, "could not be shown whole", id="too-long-to-show"),
        pytest.param(
            {"arguments": {"rows": [0] * 1_000}},
            "It takes 1001 rows on the page, one for each value and each line; at most 1000 can be read.",
            id="more-rows-than-anybody-reads",
        ),
        pytest.param({"summary": "x" * 1001}, "1000", id="summary"),
        pytest.param(
            {"urgent": True},
            "urgent: there is no such argument; there are action, arguments, summary,",
            id="unknown-argument",
        ),
        pytest.param({"idempotency_key": "a b"}, "String should match pattern", id="key"),
    ],
)
def test_a_request_that_could_not_be_read_truly_is_refused(
    agent_of_alice: Agent, arguments: dict[str, Any], says: str
) -> None:
    assert says in agent_of_alice.refused("request_confirmation", **PAY | arguments)
    assert not Confirmation.objects.exists()


def test_arguments_in_a_string_are_read_as_what_they_are(agent_of_alice: Agent) -> None:
    plain = agent_of_alice("request_confirmation", **PAY)
    in_string = agent_of_alice("request_confirmation", **PAY | {"arguments": json.dumps(PAY["arguments"])})

    assert plain == in_string


def test_a_text_with_half_a_surrogate_pair_is_asked_and_shown(agent_of_alice: Agent) -> None:
    asked = agent_of_alice("request_confirmation", **PAY | {"arguments": {"name": "a\udcff"}})

    assert asked["arguments"] == '{"name":"a\\udcff"}'


def test_what_is_wrong_with_the_arguments_is_said_in_sentences(agent_of_alice: Agent) -> None:
    refusal = agent_of_alice.refused("redeem_confirmation", confirmation_id="c\u202e1", x="y")

    assert refusal.startswith(
        "The arguments are refused, and nothing was done. confirmation_id: Input should"
    )
    assert " x: there is no such argument; there are confirmation_id, action, arguments" in refusal
    for noise in ("pydantic", "http", "\n", "\u202e", "redeem_confirmation"):
        assert noise not in refusal
    assert "action: this argument is missing." in agent_of_alice.refused("request_confirmation", arguments={})


def test_what_the_server_did_needs_no_report(agent_of_alice: Agent, file: Path) -> None:
    asked = agent_of_alice("delete_file", path=str(file))
    decide_at(asked["page"])
    agent_of_alice("delete_file", path=str(file))

    [listed] = agent_of_alice("list_confirmations")["confirmations"]

    assert listed["next"] == ("It is spent, and the outcome is on record: succeeded. Nothing is left to do.")


def test_a_group_is_named_as_who_decides_with_how_many_have(
    impatient: None, agent_of_alice: Agent, bob: User, file: Path
) -> None:
    carol, payers = make_user("carol"), Group.objects.create(name="payers")
    payers.user_set.add(bob, carol)
    Rule.objects.create(name="both", rank=1, mode="approve", approver_group=payers, approvals_needed=2)
    asked = agent_of_alice("request_confirmation", **PAY)
    guarded = agent_of_alice("delete_file", path=str(file))
    for confirmation in Confirmation.objects.all():
        decide(confirmation, bob)

    found = agent_of_alice("get_confirmation", confirmation_id=asked["confirmation_id"])
    waiting = agent_of_alice("redeem_confirmation", confirmation_id=asked["confirmation_id"], **PAY)
    again = agent_of_alice("delete_file", path=str(file))

    assert (asked["approvals"], found["approvals"], found["approvals_needed"]) == (0, 1, 2)
    assert "People of a group decide (0 of 2 have approved so far) here:" in guarded["message"]
    for said in (found["next"], waiting["message"], again["message"]):
        assert "People of a group decide (1 of 2 have approved so far)" in said
        assert "It is normal that a group takes longer than one call" in said
        assert "The person you act for" not in said

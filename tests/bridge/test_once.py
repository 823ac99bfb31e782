"""A yes is for one call of one caller, once, whatever comes over the wire and however often.

Each test says which layer refused: a JSON-RPC error is the SDK's boundary, a result with isError ours.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User

from confirmhub.confirmations.models import Confirmation, Outcome
from confirmhub.confirmations.states import Status
from mcp_bridge.tools import files
from tests.bridge.hosts import call_message, decide_at, make_token, post, send_and_leave
from tests.bridge.turns import crashed
from tests.factories import kinds_of_events

URL = {"url": {}}
BOUNDARY = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


def ask(url: str, token: str, file: Path) -> tuple[str, str]:
    """Ask to delete the file; return the state that the host got, and the page."""
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL)
    result = post(url, message, token=token).json()["result"]
    return result["requestState"], result["inputRequests"]["page"]["params"]["url"]


def retry(file: Path, state: str, **more: Any) -> dict[str, Any]:
    return call_message("delete_file", {"path": str(file)}, elicitation=URL, requestState=state, **more)


def refusal_of(answer: httpx2.Response) -> str:
    """The text of our own refusal."""
    result = answer.json()["result"]
    assert result["isError"], result
    return str(result["content"][0]["text"])


def test_the_same_state_again_is_refused_even_when_the_file_is_there_again(
    url: str, token: str, file: Path
) -> None:
    state, page = ask(url, token, file)
    decide_at(page)
    post(url, retry(file, state), token=token)
    file.write_text("quarterly numbers\n")

    refusal = refusal_of(post(url, retry(file, state), token=token))

    assert "was already redeemed. A yes can be spent once. It was redeemed at 20" in refusal
    assert refusal.endswith(f"What came of it then: succeeded. Deleted {file}, 18 bytes.")
    assert file.exists()
    assert kinds_of_events(Confirmation.objects.get()).count("redeemed") == 1


def test_the_same_confirmation_again_is_refused(url: str, token: str, file: Path) -> None:
    _, page = ask(url, token, file)
    decide_at(page)
    identity = {"confirmation_id": page.rpartition("/")[2]}
    post(url, call_message("redeem_confirmation", identity), token=token)
    file.write_text("quarterly numbers\n")

    refusal = refusal_of(post(url, call_message("redeem_confirmation", identity), token=token))

    assert "was already redeemed" in refusal
    assert file.exists()


def test_the_same_message_again_gets_the_recorded_outcome(url: str, token: str, file: Path) -> None:
    state, page = ask(url, token, file)
    decide_at(page)
    message = retry(file, state)
    post(url, message, token=token)
    file.write_text("quarterly numbers\n")

    again = post(url, message, token=token).json()["result"]

    assert not again["isError"]
    assert again["structuredContent"]["replayed"]
    assert again["structuredContent"]["message"] == (
        f"This was done before, and was not done again: Deleted {file}, 18 bytes."
    )
    assert file.exists()


def test_of_many_calls_at_once_one_acts(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, page = ask(url, token, file)
    decide_at(page)
    identity = {"confirmation_id": page.rpartition("/")[2]}
    calls = [retry(file, state) for _ in range(4)]
    calls += [call_message("redeem_confirmation", identity) for _ in range(4)]
    start = threading.Barrier(len(calls), timeout=20)

    def race(message: dict[str, Any]) -> bool:
        start.wait()
        return not post(url, message, token=token).json()["result"]["isError"]

    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        assert list(pool.map(race, calls)).count(True) == 1
    moves = [kind for kind in kinds_of_events(Confirmation.objects.get()) if kind != "refused"]
    assert moves == ["requested", "approve", "redeemed", "succeeded"]


def test_a_state_for_one_file_is_refused_for_another_by_the_boundary(
    url: str, token: str, file: Path
) -> None:
    state, page = ask(url, token, file)
    decide_at(page)
    other = file.with_name("thesis.txt")
    other.write_text("years of work")

    answer = post(url, retry(other, state), token=token)

    assert (answer.status_code, answer.json()["error"]) == (400, BOUNDARY)
    assert other.exists()
    assert file.exists()


FORGED = ["v1.AAAA", "", "constant", "{}", "v1.", ".", "v2.AAAA", "v1.AAAA.BBBB", "v1.ä\n", "v1." + "A" * 999]


@pytest.mark.parametrize("forge", FORGED)
def test_a_state_that_was_not_sealed_is_refused_by_the_boundary(
    url: str, token: str, file: Path, forge: str
) -> None:
    ask(url, token, file)
    answer = post(url, retry(file, forge), token=token)

    assert (answer.status_code, answer.json()["error"]) == (400, BOUNDARY)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.95])
def test_a_state_that_was_tampered_with_is_refused_by_the_boundary(
    url: str, token: str, file: Path, share: float
) -> None:
    """In the key's name, the nonce, the payload or the tag."""
    state, page = ask(url, token, file)
    decide_at(page)
    place = int(len(state) * share)
    flipped = state[:place] + ("A" if state[place] != "A" else "B") + state[place + 1 :]

    assert post(url, retry(file, flipped), token=token).json()["error"] == BOUNDARY
    assert file.exists()


@pytest.fixture(params=["another-user", "another-client"])
def theirs(url: str, alice: User, bob: User, request: pytest.FixtureRequest) -> str:
    """The token of somebody else, who may as much."""
    if request.param == "another-user":
        return make_token(bob, resource=f"{url}/mcp")
    return make_token(alice, resource=f"{url}/mcp", client_id="https://other.example/client.json")


def test_a_state_of_another_is_refused_by_the_boundary(url: str, token: str, file: Path, theirs: str) -> None:
    state, page = ask(url, token, file)
    decide_at(page)

    assert post(url, retry(file, state), token=theirs).json()["error"] == BOUNDARY
    assert file.exists()


def test_a_confirmation_of_another_does_not_exist(url: str, token: str, file: Path, theirs: str) -> None:
    _, page = ask(url, token, file)
    decide_at(page)
    identity = {"confirmation_id": page.rpartition("/")[2]}

    refusals = [
        refusal_of(post(url, call_message(tool, arguments), token=theirs))
        for tool, arguments in [
            ("redeem_confirmation", identity),
            ("get_confirmation", identity),
            ("cancel_confirmation", identity),
            ("report_outcome", identity | {"result": "failed"}),
            ("get_confirmation", {"confirmation_id": "00000000-0000-4000-8000-000000000000"}),
        ]
    ]

    assert set(refusals) == {"No such confirmation. Check the confirmation_id with list_confirmations."}
    assert file.exists()


def test_a_state_is_accepted_after_the_token_was_refreshed(
    url: str, token: str, file: Path, alice: User
) -> None:
    state, page = ask(url, token, file)
    decide_at(page)
    newer = make_token(alice, resource=f"{url}/mcp")

    assert not post(url, retry(file, state), token=newer).json()["result"]["isError"]
    assert not file.exists()


def test_a_sealed_state_is_no_other_tools_state(url: str, token: str, file: Path) -> None:
    state, page = ask(url, token, file)
    decide_at(page)
    identity = {"confirmation_id": page.rpartition("/")[2]}
    message = call_message("redeem_confirmation", identity, requestState=state)

    assert post(url, message, token=token).json()["error"] == BOUNDARY
    assert file.exists()


@pytest.mark.parametrize(
    ("method", "target"), [("prompts/get", {"name": "delete_file"}), ("resources/read", {"uri": "file:///x"})]
)
def test_a_sealed_state_is_no_other_methods_state(
    url: str, token: str, file: Path, method: str, target: dict[str, str]
) -> None:
    state, page = ask(url, token, file)
    decide_at(page)
    message = retry(file, state) | {"method": method}
    message["params"] |= target

    answer = post(url, message, token=token, headers={"mcp-name": next(iter(target.values()))})

    assert answer.json()["error"] == BOUNDARY
    assert Confirmation.objects.get().status == Status.APPROVED
    assert file.exists()


def test_the_same_call_on_a_later_day_is_a_new_question(url: str, token: str, file: Path) -> None:
    state, page = ask(url, token, file)
    decide_at(page)
    post(url, retry(file, state), token=token)
    file.write_text("quarterly numbers\n")

    _, later = ask(url, token, file)

    assert later != page
    assert file.exists()


def test_a_client_that_leaves_does_not_split_redemption_act_and_report(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, page = ask(url, token, file)
    decide_at(page)
    acting, gone, acted = threading.Event(), threading.Event(), threading.Event()
    execute = files.DELETE_FILE.execute

    def slow(*args: Any) -> str:
        acting.set()
        assert gone.wait(timeout=20)
        try:
            return execute(*args)
        finally:
            acted.set()

    monkeypatch.setitem(files.DELETE_FILE.__dict__, "execute", slow)
    send_and_leave(url, retry(file, state), token=token, when=acting)
    gone.set()

    assert acted.wait(timeout=20)
    # The same thread reports next, under the row's lock, which this waits for or comes too early for.
    assert any(Outcome.objects.exists() or post(url, b"").is_success for _ in range(500))
    assert not file.exists()
    assert Confirmation.objects.get().status == Status.REDEEMED


def test_a_crash_between_is_told_and_nothing_is_done_twice(
    url: str, token: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, page = ask(url, token, file)
    decide_at(page)

    def crash(*_: Any) -> str:
        raise RuntimeError("a secret detail")

    monkeypatch.setitem(files.DELETE_FILE.__dict__, "execute", crash)
    message = retry(file, state)
    first = refusal_of(post(url, message, token=token))
    monkeypatch.undo()
    again = refusal_of(post(url, message, token=token))

    assert first == crashed("delete_file")
    assert "was tried before, and was not tried again. It failed: The tool failed" in again
    assert file.exists()
    assert kinds_of_events(Confirmation.objects.get()) == ["requested", "approve", "redeemed", "failed"]

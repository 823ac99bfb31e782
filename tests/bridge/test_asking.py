"""The ways to ask, by what the host can do: each ends in the file deleted or left, and a clear answer.

A ToolError is ours, an MCPError the SDK's.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from mcp import Client
from mcp_types import CallToolResult

from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status, Verdict
from tests.bridge.hosts import (
    Person,
    call_message,
    decide_at,
    host,
    in_database,
    make_token,
    post,
    text_of,
)
from tests.confirmations.clock import make_overdue
from tests.factories import kinds_of_events, principal_for

URL = {"url": {}}
FORM = {"form": {}}


def run[R](use: Callable[[Client], Awaitable[R]], url: str, token: str, **how: Any) -> R:
    async def within() -> R:
        async with host(url, token, **how) as client:
            return await use(client)

    return asyncio.run(within())


def delete(file: Path) -> Callable[[Client], Awaitable[CallToolResult]]:
    return lambda client: client.call_tool("delete_file", {"path": str(file)})


def on_the_page(verdict: Verdict, reason: str = "") -> Person:
    return Person(before=lambda page: in_database(decide_at, page, verdict, reason=reason))


def the_one() -> Confirmation:
    return Confirmation.objects.get()


def test_a_host_that_opens_pages_gets_the_file_deleted_in_one_call(url: str, token: str, file: Path) -> None:
    person = on_the_page(Verdict.APPROVE)
    answer = run(delete(file), url, token, person=person)

    assert not file.exists()
    assert text_of(answer) == f"Deleted {file}, 18 bytes."
    assert answer.structured_content is not None
    assert answer.structured_content["status"] == "done"
    assert kinds_of_events(the_one()) == ["requested", "approve", "redeemed", "succeeded"]
    assert [asked.url for asked in person.asked] == [f"{url}/confirm/{the_one().id}"]
    seal = bytes(the_one().view_digest).hex()
    assert f"the check value {seal[:4]} {seal[4:8]}." in person.asked[0].message


def test_a_decision_during_the_hold_ends_it(url: str, token: str, file: Path) -> None:
    decisions: set[asyncio.Task[None]] = set()

    async def later(page: str) -> None:
        decisions.add(asyncio.create_task(in_database(decide_at, page, Verdict.APPROVE)))

    run(delete(file), url, token, person=Person(before=later))

    assert not file.exists()


def test_a_no_on_the_page_is_told_with_its_reason(url: str, token: str, file: Path) -> None:
    answer = run(delete(file), url, token, person=on_the_page(Verdict.DENY, "keep\nit"))

    assert answer.is_error
    assert "was denied. Do not ask again for the same" in text_of(answer)
    assert text_of(answer).endswith("The reason given, word for word: keep⟨U+000A⟩it")
    assert file.exists()


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refusal_in_the_host_closes_the_question(url: str, token: str, file: Path, action: str) -> None:
    answer = run(delete(file), url, token, person=Person(action=action))

    assert answer.is_error
    assert "The person declined. Nothing was done" in text_of(answer)
    assert (the_one().status, file.exists()) == (Status.CANCELLED, True)


def test_a_refusal_in_the_host_takes_a_yes_on_the_page_back(url: str, token: str, file: Path) -> None:
    person = on_the_page(Verdict.APPROVE)
    person.action = "decline"
    answer = run(delete(file), url, token, person=person)

    assert answer.is_error
    assert (the_one().status, file.exists()) == (Status.REVOKED, True)


def test_opening_the_page_is_not_a_decision(impatient: None, url: str, token: str, file: Path) -> None:
    person = Person()
    answer = run(delete(file), url, token, person=person)

    # Asked once, waited for in eight rounds, and ended before the client's own limit of ten.
    assert len(person.asked) == 1
    assert not answer.is_error
    assert answer.structured_content is not None
    assert answer.structured_content["status"] == "waiting_for_person"
    assert (the_one().status, file.exists()) == (Status.PENDING, True)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_host_that_opens_no_pages_gets_the_link_and_calls_again(
    url: str, token: str, file: Path, mode: str
) -> None:
    async def use(client: Client) -> CallToolResult:
        first = await client.call_tool("delete_file", {"path": str(file)})
        assert first.structured_content is not None
        page = first.structured_content["page"]
        assert page in text_of(first)
        assert f"the check value {first.structured_content['check']}." in text_of(first)
        assert str(file) in text_of(first)
        await in_database(decide_at, page)
        return await client.call_tool("delete_file", {"path": str(file)})

    assert text_of(run(use, url, token, mode=mode)) == f"Deleted {file}, 18 bytes."
    assert not file.exists()
    assert Confirmation.objects.count() == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_confirmation_alone_is_enough_to_have_it_done(
    url: str, token: str, file: Path, mode: str
) -> None:
    async def use(client: Client) -> CallToolResult:
        first = await client.call_tool("delete_file", {"path": str(file)})
        assert first.structured_content is not None
        await in_database(decide_at, first.structured_content["page"])
        identity = {"confirmation_id": first.structured_content["confirmation_id"]}
        return await client.call_tool("redeem_confirmation", identity)

    answer = run(use, url, token, mode=mode)

    assert text_of(answer) == f"Deleted {file}, 18 bytes."
    assert not file.exists()
    assert kinds_of_events(the_one()) == ["requested", "approve", "redeemed", "succeeded"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_no_reaches_a_host_that_opens_no_pages(url: str, token: str, file: Path, mode: str) -> None:
    async def use(client: Client) -> CallToolResult:
        first = await client.call_tool("delete_file", {"path": str(file)})
        assert first.structured_content is not None
        await in_database(decide_at, first.structured_content["page"], Verdict.DENY)
        identity = {"confirmation_id": first.structured_content["confirmation_id"]}
        return await client.call_tool("redeem_confirmation", identity)

    answer = run(use, url, token, mode=mode)

    assert answer.is_error
    assert "was denied" in text_of(answer)
    assert file.exists()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_nobody_decides_and_the_host_is_told_to_wait(
    impatient: None, url: str, token: str, file: Path, mode: str
) -> None:
    async def use(client: Client) -> list[CallToolResult]:
        again = functools.partial(client.call_tool, "delete_file", {"path": str(file)})
        first, second = await again(), await again()
        assert first.structured_content is not None
        identity = {"confirmation_id": first.structured_content["confirmation_id"]}
        return [first, second, await client.call_tool("redeem_confirmation", identity)]

    answers = run(use, url, token, mode=mode)

    assert [(a.structured_content or {})["status"] for a in answers] == ["waiting_for_person"] * 3
    assert (Confirmation.objects.count(), file.exists()) == (1, True)


@pytest.mark.parametrize("elicitation", [None, {}, FORM])
def test_no_page_is_pushed_on_a_host_that_did_not_declare_it(
    url: str, token: str, file: Path, elicitation: dict[str, Any] | None
) -> None:
    message = call_message("delete_file", {"path": str(file)}, elicitation=elicitation)
    result = post(url, message, token=token).json()["result"]

    assert result["resultType"] == "complete"
    assert result["structuredContent"]["status"] == "waiting_for_person"


def test_an_old_request_with_a_state_never_gets_rounds_back(
    impatient: None, url: str, token: str, file: Path
) -> None:
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL)
    state = post(url, message, token=token).json()["result"]["requestState"]
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL, requestState=state)
    result = post(url, message, token=token, version="2025-11-25").json()["result"]

    assert result["structuredContent"]["status"] == "waiting_for_person"


def test_the_first_round_asks_about_the_file_and_touches_nothing(url: str, token: str, file: Path) -> None:
    before = file.stat()
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL)
    result = post(url, message, token=token).json()["result"]

    assert (result["resultType"], list(result["inputRequests"])) == ("input_required", ["page"])
    assert result["inputRequests"]["page"]["params"]["mode"] == "url"
    assert result["requestState"]
    assert dict(the_one().fact_items)["File"] == str(file)
    assert kinds_of_events(the_one()) == ["requested"]
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("content", [{"confirmed": True}, {"confirmed": False}, {}])
def test_no_content_of_a_hosts_answer_is_a_decision(
    impatient: None, url: str, token: str, file: Path, content: dict[str, bool]
) -> None:
    message = functools.partial(call_message, "delete_file", {"path": str(file)}, elicitation=URL)
    state = post(url, message(), token=token).json()["result"]["requestState"]
    responses = {"page": {"action": "accept", "content": content}}
    answer = post(url, message(requestState=state, inputResponses=responses), token=token).json()["result"]

    assert answer["resultType"] == "input_required"
    assert (the_one().status, file.exists()) == (Status.PENDING, True)


def test_an_answer_without_a_state_is_no_answer(url: str, token: str, file: Path) -> None:
    responses = {"page": {"action": "accept"}}
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL, inputResponses=responses)
    result = post(url, message, token=token).json()["result"]

    assert result["resultType"] == "input_required"
    assert file.exists()


def test_a_person_who_is_asked_again_is_asked_about_the_same(url: str, token: str, file: Path) -> None:
    message = functools.partial(call_message, "delete_file", {"path": str(file)}, elicitation=URL)
    first = post(url, message(), token=token).json()["result"]
    second = post(url, message(), token=token).json()["result"]

    assert first["inputRequests"] == second["inputRequests"]
    assert Confirmation.objects.count() == 1


def test_a_yes_that_came_between_two_calls_is_used(url: str, token: str, file: Path) -> None:
    message = functools.partial(call_message, "delete_file", {"path": str(file)}, elicitation=URL)
    first = post(url, message(), token=token).json()["result"]
    decide_at(first["inputRequests"]["page"]["params"]["url"])
    second = post(url, message(), token=token).json()["result"]

    assert second["structuredContent"]["status"] == "done"
    assert not file.exists()


def test_nothing_secret_is_in_the_link_and_nothing_readable_in_the_state(
    url: str, token: str, file: Path
) -> None:
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL)
    result = post(url, message, token=token).json()["result"]

    assert result["inputRequests"]["page"]["params"]["url"] == f"{url}/confirm/{the_one().id}"
    assert result["requestState"].startswith("v1.")
    assert str(the_one().id) not in result["requestState"]


def test_an_expired_question_says_so(url: str, token: str, file: Path, alice: User) -> None:
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL)
    state = post(url, message, token=token).json()["result"]["requestState"]
    asked_at = the_one().requested_at
    make_overdue(the_one(), requested_at=asked_at - timedelta(hours=1), decide_by=asked_at)
    message = call_message("delete_file", {"path": str(file)}, elicitation=URL, requestState=state)
    result = post(url, message, token=token).json()["result"]

    assert result["isError"]
    assert "has expired. Ask again" in result["content"][0]["text"]
    assert file.exists()


def test_two_users_of_one_client_are_two(url: str, token: str, file: Path, alice: User, bob: User) -> None:
    post(url, call_message("delete_file", {"path": str(file)}), token=token)
    other = make_token(bob, resource=f"{url}/mcp")
    post(url, call_message("delete_file", {"path": str(file)}), token=other)

    assert len(queries.list_recent_of(requester=principal_for(alice), limit=9)) == 1
    assert len(queries.list_recent_of(requester=principal_for(bob), limit=9)) == 1

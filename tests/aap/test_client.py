"""The published client, unchanged: its own examples and scenarios, against the served hub."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentapprovalprotocol import (
    Allow,
    AsyncClient,
    AsyncGate,
    Call,
    Client,
    ConflictError,
    Deny,
    Gate,
    NotFound,
    Pending,
    ProvisionError,
    Receiver,
)
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models.functions import Now

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Status, Verdict
from confirmhub.oauth import services
from tests.aap.conftest import AGENT
from tests.aap.raw import Raw
from tests.confirmations.clock import make_overdue
from tests.factories import decide, kinds_of_events
from tests.invariants import proves

DOCS = Path(__file__).resolve().parents[2] / "docs" / "aap.md"

type Connect = Callable[..., Client]
type Later = Callable[..., None]


@pytest.fixture
def connect(base: str) -> Iterator[Connect]:
    """The published client with any credential; each is closed in the end."""
    made: list[Client] = []

    def start(token: str | None, **options: Any) -> Client:
        made.append(Client(base, token or "", **options))
        return made[-1]

    yield start
    for client in made:
        client.close()


@pytest.fixture
def client(connect: Connect, token: str) -> Client:
    return connect(token, retry_budget=2.0)


def call(**fields: Any) -> Call:
    arguments = {"payment_id": "payment_123", "amount": 4900, "exact": 0.1}
    return Call(
        **{"key": "run-1:call-1", "tool": "issue_refund", "arguments": arguments, "server": "stripe"} | fields
    )


def asked() -> Confirmation:
    return Confirmation.objects.get()


@pytest.fixture
def later(alice: User) -> Iterator[Later]:
    """Let alice decide once the next question is there, while the client waits for it."""
    threads = []

    def start(verdict: Verdict = Verdict.APPROVE, *, reason: str = "") -> None:
        thread = threading.Thread(target=_decide_next, args=(alice, verdict, reason))
        threads.append(thread)
        thread.start()

    yield start
    for thread in threads:
        thread.join(timeout=30)


def _decide_next(approver: User, verdict: Verdict, reason: str) -> None:
    try:
        for _ in range(500):
            if waiting := Confirmation.objects.filter(status=Status.PENDING).first():
                decide(waiting, approver, verdict, reason=reason)
                return
            threading.Event().wait(0.02)
    finally:
        connection.close()


def test_the_first_example_waits_runs_once_and_reports(client: Client, later: Later) -> None:
    later()
    ran = []
    with Gate(client).guard(call(reasoning="The customer was charged twice.")) as verdict:
        if verdict:
            ran.append(verdict.request_id)

    confirmation = asked()
    assert ran == [str(confirmation.id)]
    assert confirmation.summary == "The customer was charged twice."
    assert confirmation.fact_items == [("Server", "stripe")]
    assert confirmation.outcome.result == "succeeded"
    assert kinds_of_events(confirmation) == ["requested", "approve", "redeemed", "succeeded"]


def test_a_tool_that_breaks_is_reported_as_failed(client: Client, later: Later) -> None:
    later()

    def run() -> None:
        with Gate(client).guard(call()) as verdict:
            assert isinstance(verdict, Allow)
            raise RuntimeError("tool broke")

    with pytest.raises(RuntimeError, match="tool broke"):
        run()

    assert asked().outcome.result == "failed"


def test_a_denial_gives_the_persons_words_with_nothing_hidden(client: Client, later: Later) -> None:
    later(Verdict.DENY, reason="Over 40 GBP\u202eneeds a manager.")

    verdict = Gate(client).check(call())

    assert isinstance(verdict, Deny)
    assert verdict.status == "denied"
    assert "Over 40 GBP" in verdict.reason
    assert "\u202e" not in verdict.reason
    assert "202E" in verdict.reason


@proves("redeem:once")
def test_of_eight_replicas_one_runs_the_call(connect: Connect, token: str, later: Later) -> None:
    later()
    verdicts: list[object] = []
    threads = [
        threading.Thread(target=lambda client=client: verdicts.append(Gate(client).check(call())))
        for client in [connect(token) for _ in range(8)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert sum(isinstance(verdict, Allow) for verdict in verdicts) == 1
    assert [verdict.status for verdict in verdicts if isinstance(verdict, Deny)] == ["consumed"] * 7
    assert asked().status == Status.REDEEMED


def test_a_run_pauses_is_woken_and_asks_the_hub_again(base: str, token: str, alice: User) -> None:
    paused = call(resume={"framework": "test", "thread_id": "t1"})
    woken: list[object] = []

    async def run() -> None:
        client = AsyncClient(base, token)
        gate = AsyncGate(client, mode="async")
        first = await gate.check(paused)
        assert isinstance(first, Pending)
        receiver = Receiver(
            client=client, resumers={"test": lambda handle, request: woken.append((handle, request.status))}
        )
        assert await receiver.wake(first.request_id)
        # Somebody woke it before anybody decided: it is still pending.
        assert isinstance(await gate.check(paused), Pending)
        await asyncio.to_thread(decided, alice)
        assert await receiver.wake(first.request_id)
        async with gate.guard(paused) as verdict:
            assert isinstance(verdict, Allow)
            assert verdict.request_id == first.request_id
        await client.aclose()

    asyncio.run(run())

    handle = {"framework": "test", "thread_id": "t1"}
    assert woken == [(handle, "pending"), (handle, "approved")]
    assert asked().outcome.result == "succeeded"


def decided(approver: User) -> None:
    try:
        decide(asked(), approver)
    finally:
        connection.close()


def test_another_call_needs_another_yes(client: Client, alice: User) -> None:
    gate = Gate(client, mode="async")
    first = gate.check(call())
    decide(asked(), alice)

    others = [
        call(arguments={"payment_id": "payment_123", "amount": 99999, "exact": 0.1}),
        call(server="stripe-test"),
        call(key="run-1:call-2"),
    ]
    verdicts = [gate.check(other) for other in others]

    assert all(isinstance(verdict, Pending) for verdict in verdicts)
    assert len({verdict.request_id for verdict in [first, *verdicts]}) == 4
    assert isinstance(gate.check(call()), Allow)


def test_a_gate_that_waits_no_longer_takes_the_question_back(client: Client) -> None:
    verdict = Gate(client, wait_limit=0).check(call())

    assert isinstance(verdict, Deny)
    assert asked().status == Status.CANCELLED


def test_a_yes_that_was_not_used_in_time_is_used_no_more(client: Client, alice: User) -> None:
    gate = Gate(client, mode="async")
    gate.check(call())
    make_overdue(decide(asked(), alice), redeem_by=Now())

    verdict = gate.check(call())

    assert isinstance(verdict, Deny)
    assert verdict.status == "expired"
    assert asked().redeemed_at is None


def test_a_lost_answer_spends_nothing_twice(connect: Connect, token: str, later: Later) -> None:
    lost = []

    class Losing(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if request.url.path.endswith("/consume") and not lost:
                lost.append(request.headers["Idempotency-Key"])
                response.close()
                raise httpx.ReadError("the answer was lost")
            return response

    later()
    with httpx.Client(transport=Losing()) as http:
        verdict = Gate(connect(token, http=http)).check(call())

    assert isinstance(verdict, Allow)
    assert asked().redemption_key == lost[0]
    assert kinds_of_events(asked()).count("redeemed") == 1


def test_a_credential_that_is_none_runs_nothing(connect: Connect) -> None:
    verdict = Gate(connect("nobody")).check(call())

    assert isinstance(verdict, Deny)
    assert "refused this agent's credential" in verdict.reason
    assert not Confirmation.objects.exists()


def test_the_client_tells_each_refusal_apart(client: Client, connect: Connect, service: Raw) -> None:
    made = client.create({"tool": "t", "arguments": {}, "timeout": "1m"}, "key")

    with pytest.raises(ConflictError) as used:
        client.create({"tool": "t", "arguments": {}, "timeout": "2m"}, "key")
    with pytest.raises(ConflictError) as early:
        client.consume(made.id, "c")
    with pytest.raises(NotFound):
        connect(service.token).get(made.id)

    assert (used.value.code, early.value.code) == ("idempotency_conflict", "not_approved")


def test_provisioning_is_refused_in_words_of_the_protocol(base: str, token: str) -> None:
    receiver = Receiver(resumers={})

    with pytest.raises(ProvisionError) as refused:
        asyncio.run(
            receiver.provision(
                provider_url=base, provisioner_token=token, url="https://agent.example.com/aap/events"
            )
        )

    assert (refused.value.status, refused.value.code) == (403, "provisioning_not_offered")


def test_a_service_asks_as_the_documentation_shows(base: str, reviewers: Group, later: Later) -> None:
    made, secret = services.create(name="Support agent", audience=AGENT)
    [example] = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    later()
    ran: list[str] = []
    shown = {
        "https://hub.example.com": base.removesuffix("/aap"),
        "CLIENT_ID": made.client_id,
        "CLIENT_SECRET": secret,
    }
    for name, value in shown.items():
        example = example.replace(name, value)

    names: dict[str, Any] = {"run_tool": ran.append}

    exec(compile(example, str(DOCS), "exec"), names)

    names["http"].close()

    assert len(ran) == 1
    assert asked().requester_client_id == made.client_id
    assert asked().outcome.result == "succeeded"

"""The published receiver, unchanged, and what a hook of confirmhub posts to it."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from agentapprovalprotocol import AsyncClient, AsyncGate, Call, Pending, Receiver
from django.contrib.auth.models import User
from django.db.models import F
from django.db.models.functions import Now

from confirmhub.confirmations import ledger, outbox
from confirmhub.confirmations.models import Confirmation, Hook, Notice
from confirmhub.confirmations.states import Verdict
from confirmhub.notifications import delivery
from confirmhub.notifications.channels.webhook import new_secret
from confirmhub.notifications.outward import Answer
from tests.aap.raw import Raw
from tests.confirmations.clock import make_overdue
from tests.factories import decide

type Posted = list[tuple[dict[str, str], bytes]]
ADDRESS = "https://agent.example.com/aap/events"


@pytest.fixture
def hook(service: Raw) -> Hook:
    """The hook of the service, entered by an administrator."""
    asked = Confirmation.objects.get(id=service.ask(key="first").json()["id"])
    service.cancel(str(asked.id))
    return Hook.objects.create(client_id=asked.requester_client_id, url=ADDRESS, secrets=new_secret())


def deliver(status: int = 204) -> Posted:
    """Send what is due to services, and return what was posted."""
    posted: Posted = []

    def post(url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        assert url == ADDRESS
        posted.append((dict(headers), body))
        return Answer(status, None)

    Notice.objects.filter(hook__isnull=True).delete()
    leased = outbox.lease_notices(limit=10, lease=dt.timedelta(minutes=1), lane=outbox.Lane.HOOK)
    delivery.deliver(notice_ids=[notice.id for notice in leased], post=post)
    return posted


def test_a_paused_run_is_woken_by_the_hubs_own_hook(service: Raw, base: str, hook: Hook, alice: User) -> None:
    call = Call(
        key="run-1:call-2", tool="issue_refund", arguments={}, resume={"framework": "test", "thread": "t"}
    )
    woken: list[tuple[Any, str]] = []

    async def pause() -> str:
        client = AsyncClient(base, service.token or "")
        pending = await AsyncGate(client, mode="async").check(call)
        await client.aclose()
        assert isinstance(pending, Pending)
        return pending.request_id

    async def receive(posted: Posted) -> list[int]:
        client = AsyncClient(base, service.token or "")
        done = asyncio.Event()

        def resume(handle: Mapping[str, Any], request: Any) -> None:
            woken.append((handle, request.status))
            done.set()

        receiver = Receiver(secret=hook.secrets, client=client, resumers={"test": resume})
        statuses = [(await receiver.handle(*message))[0] for message in posted]
        await asyncio.wait_for(done.wait(), 20)
        forged = {**posted[0][0], "webhook-signature": "v1,AAAA"}
        statuses.append((await receiver.handle(forged, posted[0][1]))[0])
        await client.aclose()
        return statuses

    request_id = asyncio.run(pause())
    decide(Confirmation.objects.get(id=request_id), alice)
    posted = deliver()

    assert asyncio.run(receive(posted)) == [204, 401]
    assert woken == [({"framework": "test", "thread": "t"}, "approved")]
    event = json.loads(posted[0][1])
    assert set(event) == {"id", "type", "instance_id", "request_id", "created_at"}
    assert event["request_id"] == request_id
    assert event["created_at"] == service.get(request_id).json()["decision"]["decided_at"]


@pytest.mark.parametrize("how", ["denied", "cancelled", "expired"])
def test_each_end_is_told_once_and_each_attempt_says_the_same(
    service: Raw, hook: Hook, alice: User, how: str
) -> None:
    ends: dict[str, Callable[[Confirmation], object]] = {
        "denied": lambda asked: decide(asked, alice, Verdict.DENY),
        "cancelled": lambda asked: service.cancel(str(asked.id)),
        "expired": lambda _: ledger.expire_due(limit=10),
    }
    asked = Confirmation.objects.get(id=service.ask(key="second").json()["id"])
    if how == "expired":
        make_overdue(asked, decide_by=F("requested_at") + dt.timedelta(milliseconds=1))
    ends[how](asked)

    [(headers, body)] = deliver(status=503)
    delivery.breaker.clear()
    Notice.objects.update(due_at=Now(), lease_until=None)
    [(again, same)] = deliver()

    assert body == same
    assert headers["webhook-id"] == again["webhook-id"] == json.loads(body)["id"]
    decision = service.get(str(asked.id)).json()["decision"]
    assert decision["status"] == how
    assert json.loads(body)["created_at"] == decision["decided_at"]
    assert deliver() == []


def test_what_the_protocol_has_no_event_for_is_not_told(service: Raw, hook: Hook, alice: User) -> None:
    asked = Confirmation.objects.get(id=service.ask(key="second").json()["id"])
    decide(asked, alice)
    assert len(deliver()) == 1

    service.consume(str(asked.id))
    service.report(str(asked.id), status="succeeded")

    assert deliver() == []
    assert Notice.objects.get(kind="outcome").withdrawn_at is not None

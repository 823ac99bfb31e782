"""No value from outside reaches anybody's eyes unrendered: hostile values sent through everything there is.

Each field that somebody outside can write holds what must never come out, and a name by which it is found
again, so that no sink passes by being empty.
"""

from __future__ import annotations

import html
import io
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from confirmhub.confirmations import ledger, queries
from confirmhub.confirmations.actions import Action, Json, Observation
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.sending import Kind
from confirmhub.confirmations.states import Result, Verdict
from confirmhub.logs import Formatter, JsonFormatter
from confirmhub.notifications import hooks, messages, outward
from confirmhub.notifications.channels import BY_HTTP
from confirmhub.notifications.channels.base import Post, Target
from confirmhub.notifications.channels.webhook import new_secret
from mcp_bridge import answers, forms, rounds
from tests.bridge.conftest import root
from tests.bridge.hosts import ALL, call_message, post
from tests.factories import decide, make_pending, make_user
from tests.oauth.conftest import Host

__all__ = ["root"]

pytestmark = pytest.mark.django_db(transaction=True)

# Turns text around, joins and blanks that nobody sees, letters for machines alone, a terminal's control.
HIDDEN = "\u202e\u2066\u200b\u3164\U000e0041\U000e0042\x1b"
QUEUE = "/admin/confirmations/confirmation/"


def hostile(name: str) -> str:
    """A value that is found again by its name, with what must never come out, and a line of its own."""
    return f"{name}{HIDDEN}\n[2Ksecond line of {name}"


class Sink(NamedTuple):
    """What comes out somewhere, and the values that must be in it."""

    text: str
    there: str

    def check(self, name: str) -> None:
        assert not set(self.text) & set(HIDDEN), name
        assert "\n[2Ksecond line" not in self.text, name
        for value in self.there.split():
            assert value in self.text, f"{value} is not in {name}"


class World:
    """A person, a program of theirs and what it has asked, all with hostile names and words."""

    def __init__(self, resource: str, root: Path) -> None:
        self.resource = resource
        self.person = make_user(hostile("the-person"), is_staff=True, is_superuser=True)
        self.browser = Client(raise_request_exception=False)
        self.browser.force_login(self.person, backend="django.contrib.auth.backends.ModelBackend")
        self.host = Host(user=self.person, resource=resource, browser=self.browser)
        assert self.host.register(client_name=hostile("the-client")).status_code == 201
        self.agent = Principal(self.host.client_id, str(self.person.pk))
        self.file = root / hostile("the-file")
        self.file.write_text("content")
        seen = Observation(((hostile("the-label"), hostile("the-fact")),), "etag")
        words = {"summary": hostile("the-summary"), "question": hostile("the-question")}
        decide(make_pending(self.agent, action=self.action("asked", of_old=1)), self.person)
        self.asked = make_pending(self.agent, action=self.action("asked"), observation=seen, **words)
        self.denied = self.decided("denied", Verdict.DENY, reason=hostile("the-no"))
        self.revoked = self.decided("revoked")
        ledger.revoke(confirmation_id=self.revoked.id, revoker=self.person, reason=hostile("the-change"))
        self.failed = self.decided("failed", reason=hostile("the-yes"))
        receipt = ledger.redeem(
            confirmation_id=self.failed.id,
            requester=self.agent,
            action=self.action("failed"),
            redemption_key="key",
        )
        ledger.report_outcome(receipt=receipt, result=Result.FAILED, detail=hostile("the-outcome"))

    def action(self, name: str, **more: Json) -> Action:
        value = [hostile("the-value"), {hostile("the-deep-key"): hostile("the-deep-value")}]
        return Action(self.resource, name, {hostile("the-key"): value, **more})

    def decided(self, name: str, verdict: Verdict = Verdict.APPROVE, *, reason: str = "") -> Confirmation:
        return decide(make_pending(self.agent, action=self.action(name)), self.person, verdict, reason=reason)

    def page(self, path: str) -> str:
        answer = self.browser.get(path)
        assert answer.status_code == 200, path
        return html.unescape(answer.content.decode())


@pytest.fixture
def world(url: str, settings: Settings, root: Path) -> World:
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]
    settings.NOTICE_ARGUMENTS = True
    return World(settings.MCP_RESOURCE, root)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that is logged, as each of the formatters writes it."""
    written, root = io.StringIO(), logging.getLogger()
    handlers = [logging.StreamHandler(written), logging.StreamHandler(written)]
    for handler, formatter in zip(handlers, (Formatter(), JsonFormatter()), strict=True):
        handler.setFormatter(formatter)
        root.addHandler(handler)
    yield written
    for handler in handlers:
        root.removeHandler(handler)


def test_pages(world: World) -> None:
    consent = world.page(world.host.url())
    world.host.sign_in()
    halt = ledger.halt(operator=world.person, reason=hostile("the-stop"), action_pattern="stopped")
    asked = (
        "the-person the-client the-key the-value the-deep-key the-deep-value the-label the-fact the-summary"
    )

    for path, there in {
        "/": "the-question the-key the-value the-stop the-person",
        f"/confirm/{world.asked.id}": f"{asked} the-question the-stop",
        f"/confirm/{world.denied.id}": "the-no the-value the-person",
        f"/confirm/{world.revoked.id}": "the-change the-person",
        f"/confirm/{world.failed.id}": "the-yes the-outcome the-person",
        "/history": "the-person the-key",
        "/history?q=the-value": "the-key the-value",
        "/account/hosts": "the-client",
        "/account/notices": "the-person",
        QUEUE: "the-question the-person",
        f"{QUEUE}{world.asked.id}/change/": asked.replace("the-client", "the-question"),
        f"{QUEUE}{world.failed.id}/change/": "the-yes the-outcome",
        f"{QUEUE}{world.revoked.id}/change/": "the-change",
        f"{QUEUE}{world.asked.id}/deny/": "the-question the-key the-value",
        "/admin/dashboard": "the-person asked",
        "/admin/confirmations/halt/": "the-stop the-person",
        f"/admin/confirmations/halt/{halt.pk}/lift/": "the-stop",
        "/admin/oauth/client/": "the-client",
    }.items():
        Sink(world.page(path), there).check(path)
    Sink(consent, "the-client the-person").check("consent")


@pytest.mark.parametrize("kind", [Kind.ASKED, Kind.REMINDER, Kind.ESCALATED, Kind.SETTLED])
def test_messages(world: World, kind: Kind) -> None:
    row = world.denied if kind is Kind.SETTLED else world.asked
    there = "the-person the-key the-value"
    notice = LeasedNotice(7, kind, row.id, world.person.pk, None, 1)

    row = queries.get_for_requester(confirmation_id=row.id, requester=world.agent)
    message = messages.compose(notice=notice, confirmation=row, recipient=world.person)

    Sink(message.subject + message.text, there).check("mail")
    Sink(html.unescape(message.html), there).check("mail in HTML")
    assert set(BY_HTTP) == {"webhook", "slack", "teams", "ntfy"}
    for name, channel in BY_HTTP.items():
        sent: list[bytes] = []
        target = Target("https://hooks.example/a/topic", (new_secret(),))
        channel(taking(sent)).send(message=message, target=target)
        Sink(sent[0].decode("ascii"), "").check(name)
        Sink(" ".join(texts(json.loads(sent[0]))), there).check(f"{name}, as it is read")
    heard = hooks.payload(kind=kind, confirmation=row)
    Sink(" ".join(texts(heard)), f"{row.id} {row.action}").check("what a service hears")


def taking(sent: list[bytes]) -> Post:
    def post_(url: str, *, body: bytes, headers: Mapping[str, str]) -> outward.Answer:
        assert not set(url + "".join(headers.values())) & set(HIDDEN)
        sent.append(body)
        return outward.Answer(200, None)

    return post_


def test_what_a_model_is_told(world: World, url: str) -> None:
    token = world.host.sign_in(scope=ALL)["access_token"]

    def told(tool: str, *, refused: bool = False, **arguments: Any) -> str:
        answer = post(url, call_message(tool, arguments), token=token).json()["result"]
        assert answer["isError"] == refused, answer
        return " ".join(texts(answer))

    def again(row: Confirmation) -> dict[str, Any]:
        action = world.action(row.action)
        return {"confirmation_id": str(row.id), "action": action.name, "arguments": dict(action.arguments)}

    waiting = told("delete_file", path=str(world.file))
    of_the_file = Confirmation.objects.get(action="delete_file")
    decide(of_the_file, world.person, Verdict.DENY, reason=hostile("the-no"))
    stopped = world.decided("stopped")
    ledger.halt(operator=world.person, reason=hostile("the-stop"), action_pattern="stopped")
    new = world.action("new")
    asked = queries.get_for_requester(confirmation_id=world.asked.id, requester=world.agent)
    guarded = answers.waiting(asked, again="ask", approved=0, changed=[hostile("the-label")])

    assert forms.question(asked) is None  # a form shows no such values at all; the page does
    for sink in (
        Sink(waiting, "waiting_for_person the-file"),
        Sink(" ".join(texts(guarded.model_dump(mode="json"))), "the-question the-label the-fact"),
        Sink(" ".join(texts(rounds.ask(asked).model_dump(mode="json"))), "the-question"),
        Sink(told("delete_file", refused=True, path=str(world.file.parent / hostile("the-gap"))), "the-gap"),
        Sink(
            told(
                "move_file",
                refused=True,
                path=str(world.file),
                new_path=str(world.file.parent / hostile("the-aim") / "x"),
            ),
            "the-aim",
        ),
        Sink(told("list_files", path=str(world.file.parent)), "the-file file:///"),
        Sink(told("request_confirmation", action="new", arguments=new.arguments, summary="x"), "the-key"),
        Sink(
            told("request_confirmation", refused=True, action="a", arguments={}, **{hostile("the-odd"): 1}),
            "the-odd",
        ),
        Sink(told("request_confirmation", refused=True, action=hostile("the-act"), arguments={}), "letter"),
        Sink(told("request_confirmation", refused=True, action="a", arguments=hostile("the-json")), "JSON"),
        Sink(told("get_confirmation", confirmation_id=str(world.denied.id)), "the-no"),
        Sink(told("get_confirmation", confirmation_id=str(world.revoked.id)), "the-change"),
        Sink(told("get_confirmation", refused=True, confirmation_id=hostile("the-id")), "UUID"),
        Sink(told("list_confirmations"), "the-no the-change the-value"),
        Sink(told("redeem_confirmation", refused=True, **again(world.denied)), "the-no"),
        Sink(told("redeem_confirmation", refused=True, **again(world.revoked)), "the-change"),
        Sink(told("redeem_confirmation", refused=True, **again(world.failed)), "redeemed"),
        Sink(told("redeem_confirmation", refused=True, **again(stopped)), "the-stop"),
        Sink(told("redeem_confirmation", refused=True, confirmation_id=str(of_the_file.id)), "the-no"),
    ):
        sink.check(sink.text)


def test_logs_exports_and_terminals(
    world: World, log: io.StringIO, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError(hostile("the-failure"))

    world.browser.get(f"/{hostile('the-path')}")
    world.host.sign_in()
    world.browser.get(world.host.url(redirect_uri="https://evil.example/", scope=hostile("the-scope")))
    Client().post("/sign-in", {"username": hostile("the-guess"), "password": "wrong"})
    post(url, call_message("delete_file", {hostile("the-odd"): 1}), token="none")
    monkeypatch.setattr(queries, "list_waiting_for", fail)
    world.browser.get("/")
    logging.getLogger("confirmhub").warning("Told: %s", hostile("the-words"))

    def printed(*command: str) -> str:
        out = io.StringIO()
        call_command(*command, stdout=out, stderr=io.StringIO())
        return out.getvalue()

    shown = "the-key the-value the-question the-summary the-label the-fact"
    for name, sink in {
        "log": Sink(log.getvalue(), "the-path the-failure the-words"),
        "export": Sink(printed("export_audit"), "the-no the-change"),
        "hub export": Sink(printed("hub", "export"), "the-no the-change"),
        "hub list": Sink(printed("hub", "list"), "asked denied"),
        "hub show": Sink(printed("hub", "show", str(world.asked.id)), shown),
        "hub show, failed": Sink(printed("hub", "show", str(world.failed.id)), "the-outcome"),
        "hub show, for programs": Sink(printed("hub", "show", str(world.asked.id), "--json"), shown[:7]),
    }.items():
        sink.check(name)


def texts(found: object) -> Iterator[str]:
    """Every text in JSON, keys and values, as a program reads it: without escapes that hide what it is."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, dict):
        for key, value in found.items():
            yield key
            yield from texts(value)
    elif isinstance(found, list):
        for value in found:
            yield from texts(value)

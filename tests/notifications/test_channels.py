"""What each channel sends to a real HTTPS server, and what it makes of the answers."""

from __future__ import annotations

import dataclasses
import datetime as dt
import http.client
import json
import re
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
import standardwebhooks
from standardwebhooks import webhooks

from confirmhub.notifications import outward
from confirmhub.notifications.channels.base import Target, TryLater, Undeliverable
from confirmhub.notifications.channels.ntfy import Ntfy
from confirmhub.notifications.channels.slack import Slack
from confirmhub.notifications.channels.teams import Teams
from confirmhub.notifications.channels.webhook import Webhook, new_secret
from confirmhub.notifications.messages import Message
from tests.notifications.receiver import Receiver, answer

HOSTILE = "x` <https://evil.example|Approve here> [Approve](https://evil.example) <!channel> :+1: *b*"
MESSAGE = Message(
    id="<1.7@localhost>",
    webhook_id="notice_1_7",
    thread="<1@localhost>",
    kind="asked",
    at=dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC),
    heading="A confirmation waits for your decision",
    check="1a2b3c4d",
    rows=(("Who asks", HOSTILE), ("Action", "delete_file")),
    link="http://localhost:8000/confirm/1",
    invitation="Read it whole and decide",
    asked=True,
    recipient="alice",
    data={"confirmation": "1"},
)


def strings(found: object) -> list[str]:
    """Every text in some JSON."""
    if isinstance(found, dict):
        return [text for value in found.values() for text in strings(value)]
    if isinstance(found, list):
        return [text for value in found for text in strings(value)]
    return [found] if isinstance(found, str) else []


def walk(found: object) -> list[dict[str, Any]]:
    """Every object in some JSON."""
    if isinstance(found, dict):
        return [found, *(each for value in found.values() for each in walk(value))]
    if isinstance(found, list):
        return [each for value in found for each in walk(value)]
    return []


# --- webhook


def test_a_webhook_is_signed_so_that_the_specifications_library_accepts_it(receiver: Receiver) -> None:
    secret = new_secret()

    Webhook(receiver.post).send(message=MESSAGE, target=Target(receiver.url(), (secret,)))

    posted = receiver.next()
    assert standardwebhooks.Webhook(secret).verify(posted.body, posted.headers) == {
        "type": "notice.asked",
        "timestamp": "2026-11-30T12:00:00Z",
        "data": {"confirmation": "1"},
    }
    assert posted.headers["webhook-id"] == "notice_1_7"
    assert posted.headers["content-type"] == "application/json"


def test_while_a_secret_is_rotated_old_and_new_both_verify(receiver: Receiver) -> None:
    new, old, unknown = new_secret(), new_secret(), new_secret()

    Webhook(receiver.post).send(message=MESSAGE, target=Target(receiver.url(), (new, old)))

    posted = receiver.next()
    for secret in (new, old):
        standardwebhooks.Webhook(secret).verify(posted.body, posted.headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(unknown).verify(posted.body, posted.headers)


def test_what_is_changed_or_replayed_later_is_refused_by_the_receivers_library(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = new_secret()
    Webhook(receiver.post).send(message=MESSAGE, target=Target(receiver.url(), (secret,)))
    posted = receiver.next()
    verifier = standardwebhooks.Webhook(secret)

    for body, headers in [
        (posted.body.replace(b'"1"', b'"2"'), posted.headers),
        (posted.body, posted.headers | {"webhook-id": "notice_1_8"}),
        (posted.body, posted.headers | {"webhook-timestamp": str(int(time.time()) + 1)}),
    ]:
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            verifier.verify(body, headers)

    class Later(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return dt.datetime.now(tz) + dt.timedelta(minutes=6)

    monkeypatch.setattr(webhooks, "datetime", Later)
    with pytest.raises(standardwebhooks.WebhookVerificationError, match="too old"):
        verifier.verify(posted.body, posted.headers)


# --- chat and push


def test_slack_gets_blocks_in_which_no_markup_is_read(receiver: Receiver) -> None:
    Slack(receiver.post).send(message=MESSAGE, target=Target(receiver.url()))

    payload = json.loads(receiver.next().body)
    assert "mrkdwn" not in json.dumps(payload["blocks"])
    assert payload["text"] == MESSAGE.subject
    texts = [block["text"] for block in payload["blocks"] if block["type"] in ("header", "section")]
    assert {text["type"] for text in texts} == {"plain_text"}
    assert {text["emoji"] for text in texts} == {False}
    assert not any(set("<>") & set(text["text"]) for text in texts)
    assert [each["url"] for each in walk(payload) if "url" in each] == [MESSAGE.link]
    assert not {"button", "actions"} & {each.get("type") for each in walk(payload)}


def test_teams_gets_text_runs_in_which_no_markdown_is_read(receiver: Receiver) -> None:
    Teams(receiver.post).send(message=MESSAGE, target=Target(receiver.url()))

    payload = json.loads(receiver.next().body)
    card = payload["attachments"][0]["content"]
    assert payload["type"] == "message"
    assert {each["type"] for each in walk(card["body"])} == {"RichTextBlock", "TextRun"}
    assert [each["text"] for each in walk(card["body"]) if each.get("text") == HOSTILE] == [HOSTILE]
    # A link and no Action.Submit, Action.Http or Action.Execute.
    assert [(each["type"], each["url"]) for each in card["actions"]] == [("Action.OpenUrl", MESSAGE.link)]


def test_ntfy_gets_a_topic_a_link_and_no_action(receiver: Receiver) -> None:
    target = Target(receiver.url("/sub/alice-topic"), ("tk_1",))

    Ntfy(receiver.post).send(message=MESSAGE, target=target)

    posted = receiver.next()
    payload = json.loads(posted.body)
    assert posted.path == "/sub/"
    assert posted.headers["authorization"] == "Bearer tk_1"
    assert payload["topic"] == "alice-topic"
    assert payload["click"] == MESSAGE.link
    assert HOSTILE in payload["message"]
    assert not {"actions", "attach", "icon", "markdown"} & set(payload)


def test_in_ntfy_what_settles_a_question_takes_the_place_of_what_asked(receiver: Receiver) -> None:
    settled = dataclasses.replace(MESSAGE, kind="settled", id="<1.8@localhost>", asked=False)
    for message in (MESSAGE, settled):
        Ntfy(receiver.post).send(message=message, target=Target(receiver.url("/alice-topic")))

    asked, after = (json.loads(receiver.next().body) for _ in range(2))

    assert asked["sequence_id"] == after["sequence_id"]


@pytest.mark.parametrize("channel", [Slack, Teams, Ntfy, Webhook])
def test_every_body_is_ascii(receiver: Receiver, channel: type[Slack]) -> None:
    shown = dataclasses.replace(MESSAGE, rows=(("Action", "\u27e8U+202E\u27e9 \u05d0"),))

    channel(receiver.post).send(message=shown, target=Target(receiver.url("/topic"), (new_secret(),)))

    receiver.next().body.decode("ascii")


# --- what comes back


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 429, 500, 503])
def test_every_answer_but_success_is_a_failure_and_no_redirect_is_followed(
    receiver: Receiver, status: int
) -> None:
    receiver.answers["/hook"] = answer(status, Location=receiver.url("/elsewhere"))

    with pytest.raises(TryLater, match=str(status)):
        Slack(receiver.post).send(message=MESSAGE, target=Target(receiver.url()))

    receiver.next()
    assert receiver.received.empty()


@pytest.mark.parametrize(
    ("header", "after"), [("30", 30), ("soon", None), ("-1", None), ("9999999", None), ("1.5", None)]
)
def test_when_to_try_again_is_read_from_the_answer(
    receiver: Receiver, header: str, after: int | None
) -> None:
    receiver.answers["/hook"] = answer(429, Retry_After=header)

    with pytest.raises(TryLater) as caught:
        Slack(receiver.post).send(message=MESSAGE, target=Target(receiver.url()))

    assert caught.value.after == (dt.timedelta(seconds=after) if after else None)


def test_what_is_gone_is_not_tried_again(receiver: Receiver) -> None:
    receiver.answers["/hook"] = answer(410)

    with pytest.raises(Undeliverable, match="gone"):
        Slack(receiver.post).send(message=MESSAGE, target=Target(receiver.url()))


def test_an_answer_without_end_is_read_no_further_than_the_cap(receiver: Receiver) -> None:
    def pour(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(1 << 40))
        handler.end_headers()
        while True:
            handler.wfile.write(b"x" * 65_536)

    receiver.answers["/hook"] = pour

    Slack(receiver.post).send(message=MESSAGE, target=Target(receiver.url()))


def test_a_server_that_drips_its_answer_is_hung_up_on(receiver: Receiver) -> None:
    over = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not over.wait(0.1):
            handler.wfile.write(b"X: y\r\n")

    receiver.answers["/hook"] = drip
    began = time.monotonic()

    with pytest.raises((OSError, http.client.HTTPException)):
        receiver.post(receiver.url(), body=b"{}", headers={}, deadline=dt.timedelta(seconds=0.5))

    over.set()
    assert time.monotonic() - began < 5


# --- where nothing is sent


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.7", "169.254.169.254", "192.168.1.1", "::1", "fd00::1", "::ffff:10.0.0.7"],
)
def test_nothing_is_sent_to_an_address_that_is_not_public(receiver: Receiver, address: str) -> None:
    for addresses in ([address], ["93.184.215.14", address]):
        with pytest.raises(outward.UnusableAddressError, match="not a public one"):
            outward.post(receiver.url(), body=b"{}", headers={}, resolve=lambda *_, found=addresses: found)

    assert receiver.received.empty()


def test_the_address_that_was_checked_is_the_one_that_is_dialled(receiver: Receiver) -> None:
    answers = iter([["127.0.0.1"]])  # a second look-up would raise

    outward.post(
        receiver.url(),
        body=b"{}",
        headers={},
        resolve=lambda *_: next(answers),
        admits=lambda _: True,
        trust=receiver.trust,
    )

    assert receiver.next().headers["host"] == f"claude.test:{receiver.port}"


def test_a_certificate_of_another_name_or_authority_ends_it(receiver: Receiver) -> None:
    other = receiver.url().replace("claude.test", "other.test")

    with pytest.raises(ssl.SSLCertVerificationError):
        receiver.post(other, body=b"{}", headers={})
    with pytest.raises(ssl.SSLCertVerificationError):
        receiver.post(receiver.url(), body=b"{}", headers={}, trust=None)
    assert receiver.received.empty()


def test_this_machine_and_plain_http_take_the_setting_for_development(
    plain_receiver: Receiver, settings: pytest.FixtureRequest
) -> None:
    with pytest.raises(outward.UnusableAddressError):
        outward.post(plain_receiver.url(), body=b"{}", headers={})
    settings.WEBHOOKS_TO_LOOPBACK = True

    outward.post(plain_receiver.url(), body=b"{}", headers={})

    assert plain_receiver.next().body == b"{}"
    for elsewhere in ("http://hooks.example.com/", "http://10.0.0.7/", "http://127.0.0.1.example.com/"):
        with pytest.raises(outward.UnusableAddressError):
            outward.post(elsewhere, body=b"{}", headers={})


def test_a_new_secret_is_one_of_the_specification() -> None:
    secrets = {new_secret() for _ in range(10)}

    assert len(secrets) == 10
    assert all(re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret) for secret in secrets)

"""Fetching a stranger's document: from a public address, in bounded time, and no more than a document."""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from confirmhub.oauth import fetcher
from confirmhub.oauth.fetcher import UnverifiedClientError

GOOD = {"client_name": "A host", "redirect_uris": ["https://host.example/cb"]}


def test_the_documents_of_real_hosts_are_accepted(web: Any, real_host: Any) -> None:
    client_id, fields = real_host

    document = web.fetch(client_id)

    assert document.metadata.name == fields["client_name"]
    assert list(document.metadata.redirect_uris) == fields["redirect_uris"]
    assert web.asked == [(f"claude.test:{web.port}", client_id.removeprefix(web.url("")))]


@pytest.mark.parametrize(
    "change",
    [
        {"client_id": "https://claude.test/another.json"},
        {"client_id": None},
        {"client_name": None},
        {"client_name": " "},
        {"client_name": 7},
        {"client_name": "n" * 201},
        {"client_name": "nul\0"},
        {"client_name": "\ud800"},
        {"redirect_uris": None},
        {"redirect_uris": "https://host.example/cb"},
        {"redirect_uris": []},
        {"redirect_uris": [7]},
        {"redirect_uris": ["cursor://anysphere/cb", "http://evil.example/cb", "javascript:alert(1)"]},
        {"redirect_uris": [f"https://host.example/{n}" for n in range(51)]},
        {"grant_types": ["client_credentials"]},
        {"grant_types": ["urn:ietf:params:oauth:grant-type:device_code"]},
        {"grant_types": "authorization_code"},
        {"response_types": ["token"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"client_secret": "s"},
        {"client_secret_expires_at": 0},
    ],
)
def test_a_document_that_cannot_make_a_client_is_refused(web: Any, publish: Any, change: Any) -> None:
    client_id = publish("/client.json", **GOOD, **{k: v for k, v in change.items() if k not in GOOD})
    document = {"client_id": client_id, **GOOD, **change}
    web.serve_json("/client.json", {key: value for key, value in document.items() if value is not None})

    with pytest.raises(UnverifiedClientError):
        web.fetch(client_id)


def test_what_a_host_offers_beside_what_we_serve_is_dropped(web: Any, publish: Any) -> None:
    client_id = publish(
        "/cursor.json",
        client_name="Cursor",
        redirect_uris=[
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "https://www.cursor.com/agents/mcp/oauth/callback",
            "http://localhost:8787/callback",
            "http://localhost:8787/callback",
            "http://evil.example/cb",
        ],
    )

    assert web.fetch(client_id).metadata.redirect_uris == (
        "https://www.cursor.com/agents/mcp/oauth/callback",
        "http://localhost:8787/callback",
    )


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (404, {}, b"{}"),
        (302, {"Location": "http://169.254.169.254/latest/meta-data"}, b""),
        (200, {"Content_Type": "text/html"}, b"{}"),
        (200, {"Content_Encoding": "gzip"}, b"{}"),
        (200, {}, b"[]"),
        (200, {}, b"{"),
        (200, {}, b'{"client_id": NaN}'),
        (200, {}, b'{"client_id": "a", "client_id": "b"}'),
        (200, {}, b"\xff\xfe"),
        (200, {}, b"[" * 16_000),
        (200, {}, b" " * (fetcher.MAX_BYTES + 1)),
    ],
)
def test_an_answer_that_is_no_document_is_refused(
    web: Any, status: int, headers: dict[str, str], body: bytes
) -> None:
    web.pages["/client.json"] = lambda handler: web_send(handler, body, status=status, **headers)

    with pytest.raises(UnverifiedClientError):
        web.fetch(web.url("/client.json"))
    assert len(web.asked) == 1


def web_send(handler: Any, body: bytes, *, status: int, **headers: str) -> None:
    handler.send_response(status)
    for name, value in ({"Content_Type": "application/json"} | headers).items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def drip(handler: Any, *, where: str) -> None:
    """Send one byte every tenth of a second, which no timeout of a single read ever catches."""
    parts = {
        "body": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
        "headers": b"HTTP/1.1 200 OK\r\nX: ",
    }
    handler.wfile.write(parts[where])
    for _ in range(25):
        handler.wfile.write(b" " if where == "body" else b"x")
        handler.wfile.flush()
        time.sleep(0.1)


@pytest.mark.parametrize("where", ["body", "headers"])
def test_a_server_that_drips_is_cut_off_at_the_deadline(web: Any, where: str) -> None:
    web.pages["/client.json"] = lambda handler: drip(handler, where=where)
    start = time.monotonic()

    with pytest.raises(UnverifiedClientError):
        web.fetch(web.url("/client.json"), deadline=timedelta(seconds=0.6))

    assert time.monotonic() - start < 2


def test_a_name_server_that_is_silent_is_cut_off_at_the_deadline(web: Any) -> None:
    answered = threading.Event()
    start = time.monotonic()

    with pytest.raises(UnverifiedClientError):
        web.fetch(
            web.url("/client.json"),
            resolve=lambda *_: [str(answered.wait(5))],
            deadline=timedelta(seconds=0.3),
        )

    answered.set()
    assert time.monotonic() - start < 2


def test_a_port_that_accepts_and_says_nothing_is_cut_off_at_the_deadline(web: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(UnverifiedClientError):
            web.fetch(
                f"https://claude.test:{silent.getsockname()[1]}/client.json", deadline=timedelta(seconds=0.4)
            )
        assert time.monotonic() - start < 2


def test_a_certificate_for_another_name_or_of_another_authority_is_refused(web: Any, publish: Any) -> None:
    publish("/client.json", **GOOD)

    with pytest.raises(UnverifiedClientError):
        web.fetch(web.url("/client.json", host="other.test"))
    with pytest.raises(UnverifiedClientError):
        web.fetch(web.url("/client.json"), trust=None)
    assert web.asked == []


def test_one_private_address_among_public_ones_is_enough_to_refuse(web: Any, publish: Any) -> None:
    client_id = publish("/client.json", **GOOD)

    with pytest.raises(UnverifiedClientError):
        web.fetch(client_id, resolve=lambda *_: ["127.0.0.1", "93.184.216.34"], admits=fetcher.is_public)
    assert web.asked == []


def test_the_name_is_looked_up_once_and_that_address_dialled(web: Any, publish: Any) -> None:
    client_id = publish("/client.json", **GOOD)
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])

    web.fetch(client_id, resolve=lambda *_: next(answers))

    assert next(answers) == ["10.0.0.1"]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "198.18.0.1", "0.0.0.0", "0.1.2.3", "192.0.0.8", "192.0.2.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
        "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "2001:db8::1",
        "::ffff:10.0.0.1", "::ffff:8.8.8.8", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:808:808::",
        "2002:a00:1::", "2001:0:808:808::1", "fec0::1", "::10.0.0.1", "4000::1", "0x7f000001",
        "2130706433", "localhost", "",
    ],
)  # fmt: skip
def test_an_address_that_not_everybody_can_reach_is_not_public(address: str) -> None:
    assert not fetcher.is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_an_address_on_the_internet_is_public(address: str) -> None:
    assert fetcher.is_public(address)


@pytest.mark.parametrize(
    "client_id",
    [
        "https://claude.ai/oauth/client.json",
        "https://claude.ai:8443/c",
        "https://xn--80ak6aa92e.com/c",
        "https://a.example/c?v=1",
        "https://a.example/c/",
    ],
)
def test_a_good_url_may_be_a_client_id(client_id: str) -> None:
    assert fetcher.is_document_url(client_id)


@pytest.mark.parametrize(
    "client_id",
    [
        "http://a.example/c", "https://a.example", "https://a.example/", "https://a.example/./c",
        "https://a.example/../c", "https://a.example/%2e%2e/c", "https://a.example/%2E/c",
        "https://u@a.example/c", "https://u:p@a.example/c", "https://a.example/c#f", "https://a.example/c#",
        "https://A.example/c", "HTTPS://a.example/c", "https://a.example:443/c", "https://a.example:/c",
        "https://a.example:0/c", "https://a.example:99999/c", "https://a.example:x/c", "https://127.0.0.1/c",
        "https://[::1]/c", "https://2130706433/c", "https://0x7f.1/c", "https://0x7f000001/c",
        "https://localhost/c", "https://a.example./c", "https://a..example/c", "https://-a.example/c",
        "https://a_b.example/c", "https://аpple.example/c", "https://a.example/ü", "https://a.example/c d",
        "https://a.example/c\n", "https://a.example/c\\d", "https://a.example/c?x y", "https:///c",
        "https:a/c",
        "https://a.example/" + "c" * 255, "", "client", "\0",
    ],
)  # fmt: skip
def test_a_url_with_a_second_spelling_or_no_public_name_is_no_client_id(client_id: str) -> None:
    assert not fetcher.is_document_url(client_id)
    with pytest.raises(UnverifiedClientError):
        fetcher.fetch(client_id)


@pytest.mark.parametrize(
    ("header", "fresh"),
    [
        ("", timedelta(days=1)),
        ("max-age=3600", timedelta(hours=1)),
        ("public, Max-Age=600", timedelta(minutes=10)),
        ("max-age=0", timedelta(minutes=5)),
        ("no-store", timedelta(minutes=5)),
        ("no-cache, max-age=3600", timedelta(minutes=5)),
        ("max-age=99999999", timedelta(days=1)),
        ("max-age=" + "9" * 400, timedelta(days=1)),
        ("max-age=abc", timedelta(days=1)),
    ],
)
def test_freshness_follows_the_headers_within_bounds(web: Any, header: str, fresh: timedelta) -> None:
    client_id = web.url("/client.json")
    web.serve_json("/client.json", {"client_id": client_id, **GOOD}, Cache_Control=header)

    assert web.fetch(client_id).fresh_for == fresh


def test_every_failure_reads_the_same(web: Any, publish: Any) -> None:
    client_id = publish("/client.json", **GOOD)
    failures = []
    for changes in (
        {"resolve": lambda *_: []},
        {"resolve": lambda *_: ["10.0.0.1"], "admits": fetcher.is_public},
    ):
        with pytest.raises(UnverifiedClientError) as caught:
            web.fetch(client_id, **changes)
        failures.append(str(caught.value))

    assert set(failures) == {""}

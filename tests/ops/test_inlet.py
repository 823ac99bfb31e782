"""What a stranger sends slowly, in any amount or under another name stops before Django's threads."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from confirmhub.ops import inlet
from mcp_bridge import body
from tests.ops.wiring import rest


@contextlib.contextmanager
def opened(url: str, sent: bytes) -> Iterator[socket.socket]:
    at = urlsplit(url)
    with socket.create_connection(("127.0.0.1", at.port or 80), timeout=20) as connection:
        connection.sendall(sent.replace(b"HOST", at.netloc.encode()))
        yield connection


SLOW = (
    b"POST /oauth/token HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 10\r\n\r\na"
)


def test_slow_senders_hold_none_of_djangos_threads(url: str) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(opened(url, SLOW))

        assert {httpx2.get(f"{url}/sign-in", timeout=5).status_code for _ in range(50)} == {200}


def test_slow_readers_hold_none_of_djangos_threads(url: str) -> None:
    asks = b"GET /static/admin/js/vendor/xregexp/xregexp.js HTTP/1.1\r\nHost: HOST\r\n\r\n"
    at = urlsplit(url)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            connection.connect(("127.0.0.1", at.port))
            connection.sendall(asks.replace(b"HOST", at.netloc.encode()) * 20)

        assert {httpx2.get(f"{url}/sign-in", timeout=5).status_code for _ in range(50)} == {200}


def test_a_body_that_does_not_come_in_time_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "READ_WITHIN", 0.1)

    with opened(url, SLOW) as connection:
        assert rest(connection).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"Content-Length: 65537\r\n\r\n", id="declared"),
        pytest.param(
            b"Transfer-Encoding: chunked\r\n\r\n10001\r\n" + b"a" * 0x10001 + b"\r\n", id="in-chunks"
        ),
    ],
)
def test_a_body_over_the_limit_is_refused(url: str, sent: bytes) -> None:
    with opened(url, b"POST /sign-in HTTP/1.1\r\nHost: HOST\r\n" + sent) as connection:
        assert b"HTTP/1.1 413 " in rest(connection)


def test_a_body_within_the_limit_arrives_whole(url: str) -> None:
    unknown = httpx2.post(f"{url}/oauth/token", data={"p": "p" * 60_000, "grant_type": "last"})

    assert unknown.json()["error"] == "unsupported_grant_type"


@pytest.mark.parametrize(
    "kind",
    [
        *(
            f"application/x-www-form-urlencoded; charset={name}"
            for name in ("hex", "rot13", "utf-16", "idna", "x")
        ),
        "text/plain; charset*=bogus''x",
        "text/plain; charset*0=he; charset*1=x",
        'text/plain; a="\\""; charset=hex',
        "text",
        "text/plain; charset",
        "text/plain, text/html; charset=hex",
        "a/" + "b" * 20_000,
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_content_type_that_is_not_plain_is_refused(url: str, method: str, kind: str) -> None:
    refused = httpx2.request(method, f"{url}/sign-in?q=%41", headers={"content-type": kind})

    assert refused.status_code == 415


@pytest.mark.parametrize("charset", ["", "; charset=utf-8", ';charset="UTF-8"', ";  charset=us-ascii;"])
def test_a_form_in_utf8_may_say_so(url: str, charset: str) -> None:
    kind = f"application/x-www-form-urlencoded{charset}"
    answered = httpx2.post(
        f"{url}/oauth/token", content="grant_type=refresh_token&token=a", headers={"content-type": kind}
    )

    assert answered.json()["error"] in ("invalid_client", "invalid_request")


def test_too_many_fields_are_refused_whatever_is_said_of_the_charset(url: str) -> None:
    query = "&".join(["a=1"] * 1500)

    refused = httpx2.get(f"{url}/sign-in?{query}", headers={"content-type": "text/plain; charset=utf-8"})

    assert refused.status_code == 400


def test_a_multipart_form_keeps_its_boundary(url: str) -> None:
    answered = httpx2.post(f"{url}/oauth/token", files={"grant_type": (None, "last")})

    assert answered.json()["error"] == "unsupported_grant_type"


def test_a_name_with_an_underscore_passes_for_none_with_a_dash() -> None:
    kept = inlet._plain([(b"x_forwarded_proto", b"https"), (b"x-forwarded-proto", b"http")])

    assert kept == [(b"x-forwarded-proto", b"http")]


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", "/static/confirmhub/hub.css", "/live", "/api/v1/", "/oauth/token", "/mcp"]
)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost:99999",
        "localhost.:PORT",
        "localhost:PORT.",
        "localhost",
        "a@localhost:PORT",
        "",
    ],
)
def test_a_foreign_name_is_refused_on_every_path(url: str, path: str, host: str) -> None:
    named = host.replace("PORT", str(urlsplit(url).port))

    refused = httpx2.get(url + path, headers={"Host": named})

    assert refused.status_code == (403 if path == "/mcp" else 400)
    assert "set-cookie" not in refused.headers


@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]"])
def test_another_name_of_this_machine_is_told_the_right_one(application: str, name: str) -> None:
    named = f"{name}:{urlsplit(application).port}"

    for path in ("/", "/static/confirmhub/hub.css"):
        refused = httpx2.get(f"{application}{path}", headers={"Host": named})
        assert refused.status_code == 400
        assert f"Use {application}." in refused.text


def test_a_name_is_read_in_any_case(application: str) -> None:
    named = f"LOCALHOST:{urlsplit(application).port}"

    assert httpx2.get(f"{application}/static/confirmhub/hub.css", headers={"Host": named}).status_code == 200


def test_health_is_told_under_any_name(url: str) -> None:
    assert httpx2.get(f"{url}/healthz", headers={"Host": "10.1.2.3"}).status_code in (200, 503)


@pytest.mark.parametrize(
    ("public", "names"),
    [
        ("https://Confirm.example", {"confirm.example", "confirm.example:443"}),
        ("https://confirm.example:8443", {"confirm.example:8443"}),
        ("http://[::1]:8000", {"[::1]:8000"}),
        ("http://localhost", {"localhost", "localhost:80"}),
    ],
)
def test_the_names_follow_from_the_public_url(public: str, names: set[str]) -> None:
    assert inlet.hosts(public_url=public) == names


def test_many_headers_are_refused(url: str) -> None:
    assert httpx2.get(f"{url}/sign-in", headers=[("X-A", "a")] * 101).status_code == 431
    assert httpx2.get(f"{url}/sign-in", headers=[("X-A", "a")] * 60).status_code == 200

"""What the SDKs' hosts and our own make of a server that lies: some of it is believed by some of them.

What they believe is no test of ours. It stands here because the guards of `confirmhub.oauth.client` are there
for it, and because a line that fails with a newer SDK says that one of them may go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from tests.hosts.oauth.programs import Host, Line
from tests.oauth.toys import Answer, Pair, as_json, query, serving

CALLBACK = "http://127.0.0.1:33418/callback"
HONEST = "https://login.honest.example"
ELSEWHERE = "https://other.example/mcp"

GOES_ON = None
NO_S256 = "does not support code challenge method S256"
FOREIGN = "does not match|mismatch"
OTHER = "does not match expected"


@pytest.fixture
def pair() -> Iterator[Pair]:
    """An MCP server and its authorization server, which are good until a test spoils them."""
    with serving() as mcp, serving() as auth:
        pair = Pair(mcp=mcp, auth=auth)
        mcp.pages["POST /mcp"] = Fleet(pair)
        yield pair


class Fleet:
    """A server of the older protocol, whose one tool needs more than any token there is."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._answers_strangers = pair.mcp.pages["POST /mcp"]
        self.needs = ""

    def __call__(self, body: bytes, headers: dict[str, str]) -> Answer:
        message = json.loads(body)
        if headers.get("authorization") != f"Bearer {self._pair.good_token}":
            return self._answers_strangers(body, headers)
        if "id" not in message:
            return 202, {}, b""
        if message["method"] == "tools/call":
            challenge = f'Bearer error="insufficient_scope", scope="{self.needs}"'
            return as_json({"error": "insufficient_scope"}, status=403, WWW_Authenticate=challenge)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] != "initialize":
            return as_json({**answer, "error": {"code": -32601, "message": "Unknown"}}, status=404)
        return as_json(
            {
                **answer,
                "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fleet", "version": "1"},
                },
            }
        )


def foreign_issuer(pair: Pair) -> None:
    pair.metadata["issuer"] = HONEST


def plain_alone(pair: Pair) -> None:
    pair.metadata["code_challenge_methods_supported"] = ["plain"]


def no_word_of_pkce(pair: Pair) -> None:
    del pair.metadata["code_challenge_methods_supported"]


def another_resource(pair: Pair) -> None:
    pair.resource["resource"] = ELSEWHERE


# What each says that does not go on: the first TypeScript SDK, the second, Python's, and ours.
@pytest.mark.parametrize(
    ("lie", "first", "second", "python", "ours"),
    [
        (lambda _: None, GOES_ON, GOES_ON, GOES_ON, GOES_ON),
        (foreign_issuer, GOES_ON, FOREIGN, FOREIGN, "is of the issuer .* which is another"),
        (plain_alone, NO_S256, NO_S256, GOES_ON, "supports no S256"),
        (no_word_of_pkce, GOES_ON, GOES_ON, GOES_ON, "does not say that PKCE is supported"),
        (another_resource, OTHER, OTHER, OTHER, OTHER),
    ],
)
def test_a_lie_up_to_the_redirect(  # noqa: PLR0917 - one line a lie
    pair: Pair,
    host: Host,
    lie: Callable[[Pair], None],
    first: str | None,
    second: str | None,
    python: str | None,
    ours: str | None,
) -> None:
    lie(pair)
    refusal = {"typescript 2": second, "python": python, "ours": ours}.get(host.make, first)

    line = host.start(pair.url, redirect=CALLBACK)

    if refusal is GOES_ON:
        assert line["event"] == "authorize", line
        assert line["url"].startswith(f"{pair.auth.origin}/authorize?")
    else:
        assert line["event"] == "failed", line
        assert re.search(refusal, line["message"]), line
    assert "POST /token" not in pair.auth.asked


@pytest.mark.parametrize("iss", [HONEST, None])
def test_the_issuer_of_an_answer_is_wrong_or_missing(pair: Pair, host: Host, iss: str | None) -> None:
    """The first TypeScript SDK takes the code alone, so that it cannot tell whose it is."""
    line = host.start(pair.url, redirect=CALLBACK)

    line = host.answer(answer(line, iss=iss))

    if host.make.startswith("typescript 1"):
        assert line["event"] == "connected", line
    else:
        assert line["event"] == "failed", line
        assert re.search(r"\biss\b|[Ii]ssuer", line["message"]), line
    assert ("POST /token" in pair.auth.asked) == host.make.startswith("typescript 1")


@pytest.mark.parametrize(
    ("needs", "stored"),
    [
        ("devices:write", "no refresh token"),
        ("devices:read devices:write", "no refresh token"),
        ("devices:read devices:write", "a refresh token"),
    ],
)
def test_a_step_up_at_a_server_that_refreshes_as_usual(
    pair: Pair, host: Host, needs: str, stored: str
) -> None:
    """The first TypeScript SDK asks for no more than is named, and where it can refresh, for nothing."""
    stores = stored == "a refresh token"
    pair.auth.pages["POST /token"] = lambda *_: as_json(
        {
            "access_token": pair.good_token,
            "token_type": "Bearer",
            "expires_in": 300,
            "scope": "devices:read",
            "refresh_token": "rt-1",
        }
    )
    fleet = pair.mcp.pages["POST /mcp"]
    assert isinstance(fleet, Fleet)
    fleet.needs = needs
    line = host.start(pair.url, redirect=CALLBACK, keeps_refresh_token=stores)
    line = host.answer(answer(line, iss=pair.auth.origin))
    assert line["event"] == "connected", line
    assert pair.auth.asked.count("POST /token") == 1

    line = host.call("reboot_device")

    first_sdk = host.make.startswith("typescript 1")
    refreshed = pair.auth.asked.count("POST /token") == 2
    assert refreshed == (first_sdk and stores)
    if refreshed:
        assert line["event"] == "failed", line
        assert line["message"].endswith("Server returned 403 after trying upscoping")
    else:
        assert line["event"] == "authorize", line
        asked = needs if first_sdk else "devices:read devices:write"
        assert query(line["url"])["scope"] == asked


def answer(line: Line, *, iss: str | None) -> str:
    """The query string with which a person comes back."""
    assert line["event"] == "authorize", line
    sent = {"code": "c", "state": query(line["url"])["state"]} | ({"iss": iss} if iss else {})
    return str(httpx2.QueryParams(sent))

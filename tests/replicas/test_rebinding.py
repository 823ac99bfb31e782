"""What a page sends that reaches this machine by DNS rebinding or from another site, over a plain socket.

No SDK and no library between: they would set Host themselves. The four requests are the ones that a local
server must tell apart: a host's, a rebound page's, a foreign page's, and those of its own pages.
"""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests.replicas.serving import Balanced

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "0"},
    },
}


def post(address: str, *lines: str) -> tuple[int, dict[str, Any]]:
    """One request with these header lines, and no others but the ones that JSON needs."""
    body = json.dumps(INITIALIZE).encode()
    head = [
        "POST /mcp HTTP/1.1",
        *lines,
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        "connection: close",
        f"content-length: {len(body)}",
    ]
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        with connection.makefile("rb") as stream:
            answer = stream.read()
    head_of_answer, _, said = answer.partition(b"\r\n\r\n")
    return int(head_of_answer.split(b" ")[1]), json.loads(said)


@pytest.fixture
def address(cluster: Balanced) -> str:
    """Of a replica itself: no balancer stands in front of what runs on one's own machine."""
    return cluster.replicas[-1].address


def test_a_hosts_request_which_has_no_origin_is_served(cluster: Balanced, address: str, token: str) -> None:
    name = cluster.url.removeprefix("https://")
    status, answer = post(address, f"host: {name}", f"authorization: Bearer {token}")

    assert (status, answer["result"]["serverInfo"]["name"]) == (200, "confirmhub")


def test_a_page_whose_name_was_rebound_is_refused_by_its_host_before_its_token(
    cluster: Balanced, address: str, token: str
) -> None:
    evil = f"evil.example:{address.rpartition(':')[2]}"
    for lines in ([], [f"authorization: Bearer {token}"]):
        status, answer = post(address, f"host: {evil}", f"origin: http://{evil}", *lines)

        assert (status, answer["id"]) == (403, None)
        assert answer["error"]["message"] == f"Host {evil} is not served here. Use {cluster.url}."


def test_a_page_of_another_site_is_refused_by_its_origin_before_its_token(
    cluster: Balanced, address: str, token: str
) -> None:
    name = cluster.url.removeprefix("https://")
    for lines in ([], [f"authorization: Bearer {token}"]):
        status, answer = post(address, f"host: {name}", "origin: https://evil.example", *lines)

        assert (status, answer["id"]) == (403, None)
        assert answer["error"]["message"] == (
            f"Origin https://evil.example is not served here. Use {cluster.url}."
        )


def test_a_page_of_our_own_is_served(cluster: Balanced, address: str, token: str) -> None:
    name = cluster.url.removeprefix("https://")
    lines = (f"host: {name}", f"origin: {cluster.url}", f"authorization: Bearer {token}")
    status, answer = post(address, *lines)

    assert (status, answer["result"]["serverInfo"]["name"]) == (200, "confirmhub")

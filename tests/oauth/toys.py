"""A toy MCP server and its toy authorization server, on two loopback ports, that lie as they are told."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

type Answer = tuple[int, dict[str, str], bytes]


def as_json(document: object, *, status: int = 200, **headers: str) -> Answer:
    sent = {"Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return status, sent, json.dumps(document).encode()


@dataclass
class Site:
    """One HTTP server. `pages` maps a method and a path to what it answers; `asked` is what it was asked."""

    origin: str = ""
    pages: dict[str, Callable[[bytes, dict[str, str]], Answer]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, page: str, body: bytes, headers: dict[str, str]) -> Answer:
        self.asked.append(page)
        found = self.pages.get(page)
        return found(body, headers) if found else (404, {}, b"")


@contextlib.contextmanager
def serving() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            page = f"{self.command} {urlsplit(self.path).path}"
            status, headers, sent = site.answer(page, body, {k.lower(): v for k, v in self.headers.items()})
            self.send_response(status)
            for name, value in {"Content-Length": str(len(sent)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # who asked may have hung up
                self.wfile.write(sent)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.origin = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Pair:
    """The two servers as they should be. A test spoils what it is about."""

    mcp: Site
    auth: Site
    metadata: dict[str, Any] = field(default_factory=dict)
    resource: dict[str, Any] = field(default_factory=dict)
    challenge_scope: str = "devices:read"
    good_token: str = "good"

    def __post_init__(self) -> None:
        issuer = self.auth.origin
        self.metadata = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "registration_endpoint": f"{issuer}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        self.resource = {"resource": self.url, "authorization_servers": [issuer]}
        self.mcp.pages = {
            "POST /mcp": self._called,
            "GET /.well-known/oauth-protected-resource/mcp": lambda *_: as_json(self.resource),
        }
        self.auth.pages = {
            "GET /.well-known/oauth-authorization-server": lambda *_: as_json(self.metadata),
            "POST /register": self._registered,
            "POST /token": lambda *_: as_json({"access_token": self.good_token, "token_type": "Bearer"}),
        }

    @property
    def url(self) -> str:
        return f"{self.mcp.origin}/mcp"

    def _called(self, body: bytes, headers: dict[str, str]) -> Answer:
        del body
        if headers.get("authorization") == f"Bearer {self.good_token}":
            return as_json({"result": "done"})
        where = f"{self.mcp.origin}/.well-known/oauth-protected-resource/mcp"
        challenge = f'Bearer scope="{self.challenge_scope}", resource_metadata="{where}"'
        return as_json({}, status=401, WWW_Authenticate=challenge)

    def _registered(self, body: bytes, headers: dict[str, str]) -> Answer:
        del headers
        return as_json(
            {**json.loads(body), "client_id": "toy", "token_endpoint_auth_method": "none"}, status=201
        )


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}

"""A server of others, to which a tool sends invoices: it takes each idempotency key once."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Invoicing(ThreadingHTTPServer):
    """Knows one customer, C1234, and remembers what it was sent, by idempotency key."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.customer = {"name": "Anna", "version": "1"}
        self.sent: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Invoicing

    def do_GET(self) -> None:
        if self.path == "/customers/C1234":
            self._answer(200, self.server.customer)
        else:
            self._answer(404, {})

    def do_POST(self) -> None:
        invoice = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["if-match"] == f'"{self.server.customer["version"]}"':
            self.server.sent.setdefault(self.headers["idempotency-key"], invoice)
            self._answer(201, {"number": len(self.server.sent)})
        else:
            self._answer(412, {})

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def invoicing() -> Iterator[Invoicing]:
    """Serve for as long as the block runs."""
    with Invoicing() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()

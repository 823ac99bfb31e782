"""A web server that listens on this machine, and keeps what is posted to it."""

from __future__ import annotations

import contextlib
import queue
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler

from confirmhub.notifications import outward
from tests.notifications.smtp import SOON
from tests.oauth.sites import listening


@dataclass(frozen=True)
class Posted:
    """One request that came in."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Answers 200, unless `answers` has another answer for the path."""

    port: int
    trust: ssl.SSLContext | None
    received: queue.Queue[Posted] = field(default_factory=queue.Queue)
    answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)

    @property
    def post(self) -> Callable[..., outward.Answer]:
        """The real POST, told to find every name here and to trust our CA."""
        return partial(
            outward.post, resolve=lambda *_: ["127.0.0.1"], admits=lambda _: True, trust=self.trust
        )

    def url(self, path: str = "/hook") -> str:
        """A URL of it: by a name where it has TLS, else by this machine's address."""
        return (
            f"https://claude.test:{self.port}{path}" if self.trust else f"http://127.0.0.1:{self.port}{path}"
        )

    def next(self, *, within: float = SOON) -> Posted:
        """The next request. Raises queue.Empty when none comes in time (seconds)."""
        return self.received.get(timeout=within)


def answer(status: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer with this status and these headers."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return send


@contextmanager
def receiving(server_side: ssl.SSLContext | None, client_side: ssl.SSLContext | None) -> Iterator[Receiver]:
    """Receive in a thread; with TLS where both sides of it are given."""
    receiver = Receiver(port=0, trust=client_side)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.put(Posted(self.path, headers, body))
            with contextlib.suppress(OSError):  # who asked may have given up
                receiver.answers.get(self.path, answer(200))(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            pass

    with listening(Handler, server_side) as receiver.port:
        yield receiver

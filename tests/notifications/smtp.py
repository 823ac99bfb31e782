"""A mail server on a free port of this machine, for the tests to read what arrived."""

from __future__ import annotations

import email
import email.policy
import queue
import socketserver
import threading
from contextlib import suppress
from email.message import EmailMessage

SOON = 20.0  # seconds; a worker's start on a busy machine is most of it


class Sink(socketserver.ThreadingTCPServer):
    """Keeps what it gets, and refuses whom it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.received: queue.Queue[EmailMessage] = queue.Queue()
        self.answers: dict[str, str] = {}  # recipient -> answer to RCPT
        self.open = threading.Event()  # cleared: mail comes in, and is never acknowledged
        self.open.set()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def took(self, message_id: str) -> None:
        """Called for each mail that came in."""

    def next(self, *, within: float = SOON) -> EmailMessage:
        """The next mail. Raises queue.Empty when none comes in time (seconds)."""
        return self.received.get(timeout=within)


class _Session(socketserver.StreamRequestHandler):
    """One connection: as much of RFC 5321 as smtplib speaks."""

    server: Sink

    def handle(self) -> None:
        with suppress(ConnectionError):
            self._answer("220 sink ESMTP")
            while line := self.rfile.readline().decode("ascii", "replace").strip():
                verb = line.partition(" ")[0].upper()
                if verb == "DATA":
                    self._take()
                elif verb == "RCPT":
                    address = line.partition("<")[2].partition(">")[0]
                    self._answer(self.server.answers.get(address, "250 OK"))
                elif verb == "QUIT":
                    return self._answer("221 bye")
                else:
                    self._answer("250 OK")
        return None

    def _take(self) -> None:
        self._answer("354 go on")
        lines = list(iter(self.rfile.readline, b".\r\n"))
        raw = b"".join(line.removeprefix(b".") if line.startswith(b"..") else line for line in lines)
        message = email.message_from_bytes(raw, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.server.took(message["Message-ID"])
        self.server.received.put(message)
        self.server.open.wait()
        self._answer("250 OK")

    def _answer(self, line: str) -> None:
        self.wfile.write(line.encode("ascii") + b"\r\n")

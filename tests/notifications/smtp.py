"""A mail server on a free port of this machine, for the tests to read what arrived."""

from __future__ import annotations

import asyncio
import email
import email.policy
import logging
import queue
import socket
import threading
import uuid
from email.message import EmailMessage
from typing import Self

from aiosmtpd.smtp import SMTP, Envelope, Session

# It tells every command, which takes longer than to answer it.
logging.getLogger("mail.log").setLevel(logging.WARNING)

SOON = 60.0  # seconds; a worker's start on a busy machine is most of it


class Sink:
    """Keeps what it gets, and refuses whom it is told to."""

    def __init__(self) -> None:
        self.received: queue.Queue[EmailMessage] = queue.Queue()
        self.answers: dict[str, str] = {}  # recipient -> answer to RCPT
        self.open = threading.Event()  # cleared: mail comes in, and is never acknowledged
        self.open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._ended = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.open.set()
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def took(self, message_id: str) -> None:
        """Called for each mail that came in."""

    def next(self, *, within: float = SOON) -> EmailMessage:
        """The next mail. Raises queue.Empty when none comes in time (seconds)."""
        return self.received.get(timeout=within)

    def next_of(self, confirmation_id: uuid.UUID) -> EmailMessage:
        """The next mail about this. One that a worker of an earlier test sent may still come in before."""
        while str(confirmation_id) not in (mail := self.next())["Message-ID"]:
            pass
        return mail

    async def handle_RCPT(  # noqa: N802 - the server calls it so
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        envelope.rcpt_tos.append(address)
        return self.answers.get(address, "250 OK")

    async def handle_DATA(  # noqa: N802 - the same
        self, _server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        assert isinstance(envelope.content, bytes)
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.took(message["Message-ID"])
        self.received.put(message)
        if not self.open.is_set():
            await asyncio.to_thread(self.open.wait)
        return "250 OK"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await self._loop.create_server(lambda: SMTP(self, loop=self._loop), sock=self._listener)
        await self._ended.wait()
        server.close()

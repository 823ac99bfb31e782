"""Mail, in text and HTML."""

from __future__ import annotations

import smtplib
from contextlib import suppress
from typing import Self

from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives, mailers
from django.core.mail.backends import smtp
from django.core.mail.backends.base import BaseEmailBackend
from django.core.validators import validate_email

from confirmhub.notifications.channels.base import Target, Undeliverable
from confirmhub.notifications.messages import Message


def folder() -> str:
    """Where mail is written to, in place of a server; empty where there is one."""
    return str(getattr(mailers.default, "file_path", ""))


class Email:
    """Mail, by the mailer that the settings name. Its connection is kept for the mails of one `with`."""

    def __init__(self) -> None:
        self._connection: BaseEmailBackend | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def send(self, *, message: Message, target: Target) -> None:
        """Hand the message to the mail server, or write it to its file.

        Raises:
            Undeliverable: It is no usable address, or the server refuses it for good.
            OSError: The server is away, or refuses it for now; smtplib's errors are such.
        """
        try:
            validate_email(target.address)
        except ValidationError as exc:
            raise Undeliverable("There is no usable e-mail address.") from exc
        mail = EmailMultiAlternatives(
            subject=message.subject,
            body=message.text,
            to=[target.address],
            headers={
                "Message-ID": message.id,
                # One thread for all that is said of one confirmation (RFC 5322 section 3.6.4).
                "References": message.thread,
                # RFC 3834: no out-of-office notes in return.
                "Auto-Submitted": "auto-generated",
            },
        )
        mail.attach_alternative(message.html, "text/html")
        try:
            self._open().send_messages([mail])
        except smtplib.SMTPRecipientsRefused as exc:
            # RFC 5321 section 4.2.1: 5yz is a permanent answer, 4yz one to try again after.
            if all(code >= 500 for code, _ in exc.recipients.values()):
                raise Undeliverable("The mail server refuses the address.") from exc
            raise
        except Exception:
            self._close()  # whatever state it is in
            raise

    def _open(self) -> BaseEmailBackend:
        if self._connection is None:
            self._connection = mailers.default
            # A file is one mail's; a server takes as many as there are.
            if isinstance(self._connection, smtp.EmailBackend):
                self._connection.open()
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError):  # smtplib.SMTPException, too
                connection.close()

"""The ways to reach a person, each a class with one method."""

from __future__ import annotations

import smtplib
from typing import Protocol

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email

from confirmhub.notifications.messages import Message


class Undeliverable(Exception):
    """This person cannot be reached this way, however often it is tried."""


class Channel(Protocol):
    """A way to reach a person."""

    def send(self, *, message: Message, recipient: User) -> None:
        """Hand the message over. It may be called again for the same one.

        Raises:
            Undeliverable: It is no use to try again.
        """


class Email:
    """Mail, in text and HTML, by the mailer that the settings name."""

    def send(self, *, message: Message, recipient: User) -> None:
        """Hand the message to the mail server, or write it to its file.

        Raises:
            Undeliverable: They have no usable address, or the server refuses it for good.
        """
        try:
            validate_email(recipient.email)
        except ValidationError as exc:
            raise Undeliverable("they have no usable e-mail address") from exc
        mail = EmailMultiAlternatives(
            subject=message.subject,
            body=message.text,
            to=[recipient.email],
            headers={
                "Message-ID": message.id,
                # RFC 3834: no out-of-office notes in return.
                "Auto-Submitted": "auto-generated",
            },
        )
        mail.attach_alternative(message.html, "text/html")
        try:
            mail.send()
        except smtplib.SMTPRecipientsRefused as exc:
            # RFC 5321 section 4.2.1: 5yz is a permanent answer, 4yz one to try again after.
            if all(code >= 500 for code, _ in exc.recipients.values()):
                raise Undeliverable("the mail server refuses their address") from exc
            raise

"""Mail into a folder where there is no mail server: one file for each, which a mail program opens."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Sequence
from email.policy import SMTP
from pathlib import Path

from django.core.mail import EmailMessage
from django.core.mail.backends.filebased import EmailBackend as FileBackend


class EmailBackend(FileBackend):
    """Django's, whose files hold several mails with lines between them, and are called logs."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        return sum(self._write(message) for message in email_messages)

    def _write(self, message: EmailMessage) -> int:
        name = f"{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}.eml"
        written = Path(self.file_path, name)
        written.write_bytes(message.message(policy=SMTP).as_bytes())
        return 1

from __future__ import annotations

from django.apps import AppConfig


class ConfirmationsConfig(AppConfig):
    name = "confirmhub.confirmations"
    label = "confirmations"

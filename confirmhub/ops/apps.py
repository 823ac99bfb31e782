"""The app that holds the heartbeats."""

from __future__ import annotations

from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "confirmhub.ops"
    label = "ops"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Operation"

"""The app that keeps what the protocol's clients sent."""

from __future__ import annotations

from django.apps import AppConfig


class AapConfig(AppConfig):
    name = "confirmhub.aap"
    label = "aap"
    verbose_name = "Agent Approval Protocol"

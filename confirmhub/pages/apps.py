"""The pages where a person decides."""

from __future__ import annotations

from django.apps import AppConfig


class PagesConfig(AppConfig):
    name = "confirmhub.pages"

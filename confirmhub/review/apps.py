"""The operators' queue, in Django's admin."""

from __future__ import annotations

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "confirmhub.review"

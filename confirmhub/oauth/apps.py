"""The app that holds the swapped models of django-oauth-toolkit.

It must stand before `oauth2_provider` in INSTALLED_APPS, so that our consent page wins.
"""

from __future__ import annotations

from django.apps import AppConfig


class OAuthConfig(AppConfig):
    name = "confirmhub.oauth"
    label = "oauth"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Connected hosts"

"""The operators' queue, in Django's admin."""

from __future__ import annotations

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "confirmhub.review"

    def ready(self) -> None:
        """Send the admin's sign-in to the one page for it, so that there is one look, one lockout, one place to type."""
        from django.contrib import admin

        from confirmhub.review.sign_in import sign_in

        admin.site.login = sign_in  # type: ignore[method-assign]
        admin.site.site_header = admin.site.site_title = "confirmhub review"
        admin.site.index_title = "Review"
        admin.site.enable_nav_sidebar = False

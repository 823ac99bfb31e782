"""The operators' queue, in Django's admin."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ReviewConfig(AppConfig):
    name = "confirmhub.review"


class ReviewAdminConfig(admin.AdminConfig):
    """Django's admin with the site of ours; the settings name it."""

    default = False
    default_site = "confirmhub.review.site.ReviewSite"

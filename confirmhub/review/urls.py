"""What the review has beside Django's own admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from confirmhub.review import dashboard

app_name = "review"
urlpatterns = [
    path("dashboard", admin.site.admin_view(dashboard.page), name="dashboard"),
]

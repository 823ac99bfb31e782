"""The API's paths."""

from __future__ import annotations

from django.urls import path

from confirmhub.api import views

app_name = "api"
urlpatterns = [
    path(
        "api/v1/confirmations/<uuid:confirmation_id>",
        views.ConfirmationDetail.as_view(),
        name="confirmation",
    ),
]

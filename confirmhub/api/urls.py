"""The API's paths that Django serves; `hot` has the others."""

from __future__ import annotations

from django.urls import path

from confirmhub.api import views

app_name = "api"
_ONE = "api/v1/confirmations/<uuid:confirmation_id>"
urlpatterns = [
    path("api/v1/confirmations", views.Confirmations.as_view(), name="confirmations"),
    path(_ONE, views.ConfirmationDetail.as_view(), name="confirmation"),
    path(f"{_ONE}/outcome", views.Outcomes.as_view(), name="outcome"),
    path(f"{_ONE}/cancel", views.Cancellation.as_view(), name="cancel"),
    path(f"{_ONE}/receipt", views.SignedReceipt.as_view(), name="receipt"),
    path("api/v1/receipt-keys", views.ReceiptKeys.as_view(), name="receipt_keys"),
    path("api/v1/waiting", views.Waiting.as_view(), name="waiting"),
    path("api/<path:rest>", views.Nothing.as_view()),
]

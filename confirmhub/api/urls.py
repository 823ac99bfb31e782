"""The API's paths that Django serves; `hot` has the others."""

from __future__ import annotations

from django.urls import path, re_path

from confirmhub.api import reference, views
from confirmhub.confirmations.errors import NotFound

app_name = "api"
_ONE = "api/v1/confirmations/<uuid:confirmation_id>"
_NO_ID = "api/v1/confirmations/[^/]+"
resources = [
    path("api/v1/confirmations", views.Confirmations.as_view(), name="confirmations"),
    path(_ONE, views.ConfirmationDetail.as_view(), name="confirmation"),
    path(f"{_ONE}/outcome", views.Outcomes.as_view(), name="outcome"),
    path(f"{_ONE}/cancel", views.Cancellation.as_view(), name="cancel"),
    path(f"{_ONE}/receipt", views.SignedReceipt.as_view(), name="receipt"),
    path("api/v1/receipt-keys", views.ReceiptKeys.as_view(), name="receipt_keys"),
    path("api/v1/waiting", views.Waiting.as_view(), name="waiting"),
]
urlpatterns = [
    *resources,
    path("api/v1/openapi.json", reference.openapi, name="openapi"),
    path("api/v1/docs", reference.docs, name="docs"),
    # What is no id reads as one that is nobody's.
    re_path(rf"^{_NO_ID}(?:/(?:outcome|cancel|receipt))?\Z", views.Nothing.as_view(refusal=NotFound)),
    re_path(r"^api(?:/[\s\S]*)?\Z", views.Nothing.as_view()),
]

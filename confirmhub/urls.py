"""Every path that Django serves. The bridge and /healthz are routed before it, in `asgi`."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("confirmhub.oauth.urls")),
    path("", include("confirmhub.api.urls")),
    path("", include("confirmhub.pages.urls")),
    path("", include("confirmhub.notifications.urls")),
    path("admin/", include("confirmhub.review.urls")),
    path("admin/", admin.site.urls),
]
handler400 = "confirmhub.pages.errors.bad_request"
handler403 = "confirmhub.pages.errors.forbidden"
handler404 = "confirmhub.pages.errors.not_found"
handler500 = "confirmhub.pages.errors.server_error"

"""The pages' paths."""

from __future__ import annotations

from django.urls import path

from confirmhub.pages import account, trying, views

app_name = "pages"
urlpatterns = [
    path("", views.inbox, name="inbox"),
    path("deny-all", views.deny_all, name="deny_all"),
    path("history", views.history, name="history"),
    path("confirm/<uuid:confirmation_id>", views.confirm, name="confirm"),
    path("confirm/<uuid:confirmation_id>/revoke", views.revoke, name="revoke"),
    path("confirm/<path:path>", views.damaged),
    path("try", trying.try_it, name="try"),
    path("try/<uuid:confirmation_id>/spend", trying.spend, name="spend"),
    path("favicon.ico", views.favicon),
    path("sign-in", account.sign_in, name="sign_in"),
    path("sign-out", account.sign_out, name="sign_out"),
    path("password", account.password, name="password"),
    path("password/changed", account.password_changed, name="password_changed"),
]

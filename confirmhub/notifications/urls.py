"""The paths of a person's page about their notices."""

from __future__ import annotations

from django.urls import path

from confirmhub.notifications import views

app_name = "notices"
urlpatterns = [
    path("account/notices", views.notices, name="page"),
    path("account/notices/add", views.add, name="add"),
    path("account/notices/quiet", views.quiet, name="quiet"),
    path("account/notices/<int:number>", views.change, name="change"),
]

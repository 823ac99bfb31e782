"""What can be done to the marked rows of a list: by whom. Who may look at the list may do none of it."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.admin.options import ModelAdmin
from django.contrib.auth.models import Permission, User
from django.test import Client as Browser

from confirmhub.oauth import services
from confirmhub.oauth.models import Service

LIST = "/admin/oauth/service/"
ALL = [
    pytest.param(its_admin, action.func, id=f"{model._meta.model_name}-{action.name}")
    for model, its_admin in admin.site._registry.items()
    for action in its_admin._get_base_actions()
]


@pytest.mark.parametrize(("its_admin", "action"), ALL)
def test_every_action_names_the_permission_that_it_takes(its_admin: ModelAdmin, action: object) -> None:
    # Django offers, and runs, an action that names none for everybody who may see the list.
    needed = getattr(action, "allowed_permissions", ())

    assert needed
    assert all(callable(getattr(its_admin, f"has_{name}_permission")) for name in needed)
    assert "view" not in needed


@pytest.mark.parametrize("action", ["renew_secret", "block"])
def test_who_may_only_look_neither_gets_a_secret_nor_shuts_anybody_out(db: None, action: str) -> None:
    service, _ = services.create(name="Payments", audience="https://payments.example/mcp")
    auditor = User.objects.create_user("auditor", is_staff=True)
    auditor.user_permissions.set(Permission.objects.filter(codename="view_service"))
    browser = Browser()
    browser.force_login(auditor, backend="django.contrib.auth.backends.ModelBackend")

    page = browser.post(LIST, {"action": action, "_selected_action": [service.pk]}, follow=True)

    assert b"chcs_" not in page.content
    now = Service.objects.get()
    assert (now.blocked, now.client_secret) == (False, service.client_secret)

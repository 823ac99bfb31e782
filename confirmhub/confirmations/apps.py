from __future__ import annotations

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class ConfirmationsConfig(AppConfig):
    name = "confirmhub.confirmations"
    label = "confirmations"

    def ready(self) -> None:
        from confirmhub.confirmations.roles import make_roles  # noqa: PLC0415 - needs the models

        # The turn of the last app that has models: only then has Django made the permissions of them all.
        *_, last = (app for app in apps.get_app_configs() if app.models_module)
        post_migrate.connect(make_roles, sender=last, dispatch_uid="confirmhub roles")

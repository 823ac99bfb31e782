"""The heartbeats of the background processes."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar = []
    operations: ClassVar = [
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name__exact", ""), _negated=True),
                        name="heartbeat_name_given",
                    )
                ]
            },
        )
    ]

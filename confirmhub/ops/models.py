"""When each background process last said that it is alive."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Heartbeat(models.Model):
    """One process by its role (`worker`, `beat`), and when it last ran. Written by `heartbeat.beat`."""

    name = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="heartbeat_name_given", condition=~models.Q(name__exact=""))
        ]

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%Y-%m-%d %H:%M:%S}"

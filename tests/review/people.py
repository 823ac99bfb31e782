"""Somebody's browser, without a browser."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.test import Client


def signed_in(user: User) -> Client:
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    return client

"""Whom a notice is for, where they want it, and when; read for many notices at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from django.contrib.auth.models import User

from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.notifications.models import Destination


def destinations_of(*, user_ids: Collection[int | None]) -> Mapping[int, list[tuple[int, str]]]:
    """The active destinations of each of these people, each with its channel; who has none is not in it."""
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    active = Destination.objects.filter(user__in=user_ids, is_active=True).order_by("id")
    for user_id, number, channel in active.values_list("user_id", "id", "channel"):
        found[user_id].append((number, channel))
    return found


def find(*, notices: Collection[LeasedNotice]) -> tuple[Mapping[int, User], Mapping[int, Destination]]:
    """The people whom these notices are for, with their quiet hours, and the destinations, by key."""
    users = {notice.recipient_id for notice in notices if notice.recipient_id is not None}
    numbers = {notice.destination for notice in notices if notice.destination}
    people = User.objects.filter(pk__in=users).select_related("quiet_hours")
    chosen = Destination.objects.filter(pk__in=numbers) if numbers else Destination.objects.none()
    return {user.pk: user for user in people}, {row.pk: row for row in chosen}

"""The stops of redemptions that are in force, as the pages tell of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User

from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation, Halt
from confirmhub.confirmations.policies import matches
from confirmhub.pages import askers, values, words
from confirmhub.pages.values import Value
from confirmhub.pages.words import Moment

_EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Stop:
    """One of them. What is None is not narrowed: every action, every program, everybody."""

    pattern: Value | None
    program: Value | None
    account: Value | None
    since: Moment
    by: Value
    why: Value


def told(*, viewer: User) -> list[Stop]:
    """Those that a person is told of on every page: what may concern them, and for operators all."""
    mine = ("", str(viewer.pk))
    return _stops((halt for halt in queries.list_halts() if viewer.is_staff or halt.subject in mine), viewer)


def covering(confirmation: Confirmation, *, viewer: User) -> list[Stop]:
    """Those that keep this confirmation from being redeemed."""
    return _stops((halt for halt in queries.list_halts() if _covers(halt, confirmation)), viewer)


def _covers(halt: Halt, confirmation: Confirmation) -> bool:
    return (
        halt.client_id in ("", confirmation.requester_client_id)
        and halt.subject in ("", confirmation.requester_subject)
        and matches(pattern=halt.action_pattern, name=confirmation.action)
    )


def _stops(halts: Iterable[Halt], viewer: User) -> list[Stop]:
    found = list(halts)
    if not found:
        return []
    people = {halt.subject for halt in found} | {str(halt.set_by_id) for halt in found}
    names = askers.names(people, viewer=viewer)
    return [
        Stop(
            pattern=None if halt.action_pattern == _EVERYTHING else values.value(halt.action_pattern),
            program=_program(halt.client_id) if halt.client_id else None,
            account=values.value(names.get(halt.subject, halt.subject)) if halt.subject else None,
            since=words.moment(halt.set_at),
            by=values.value(names.get(str(halt.set_by_id), f"account {halt.set_by_id}")),
            why=values.value(halt.reason),
        )
        for halt in found
    ]


def _program(client_id: str) -> Value:
    known = askers.asker(client_id)
    return known.host if known.since or known.ours else values.value(client_id)

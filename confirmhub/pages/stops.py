"""The stops of redemptions that are in force, as the pages tell of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Confirmation, Halt
from confirmhub.confirmations.policies import matches
from confirmhub.oauth import connections
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

    @property
    def narrowed(self) -> bool:
        """Whether there is anything that it leaves alone."""
        return any((self.pattern, self.program, self.account))


def told(*, viewer: User) -> list[Stop]:
    """Those that a person is told of on every page: what may touch them, and for operators all."""
    halts = queries.list_halts()
    if not viewer.is_staff:
        near = _near(viewer, {halt.client_id for halt in halts} - {""})
        halts = [
            halt for halt in halts if halt.subject in ("", str(viewer.pk)) and halt.client_id in ("", *near)
        ]
    return _stops(halts, viewer)


def anybody_is_told() -> bool:
    """Whether there is one that may touch anybody, which is all that who is not signed in is told."""
    return any(not halt.subject and not halt.client_id for halt in queries.list_halts())


def covering(confirmation: Confirmation, *, viewer: User) -> list[Stop]:
    """Those that keep this confirmation from being redeemed."""
    return _stops([halt for halt in queries.list_halts() if _covers(halt, confirmation)], viewer)


def _near(viewer: User, client_ids: set[str]) -> set[str]:
    """Those of these programs that act for this person, or have something open that they may see."""
    if not client_ids:
        return set()
    connected = connections.connected_of(user=viewer, client_ids=client_ids)
    return connected | queries.clients_open_for(approver=viewer, client_ids=client_ids)


def _covers(halt: Halt, confirmation: Confirmation) -> bool:
    return (
        halt.client_id in ("", confirmation.requester_client_id)
        and halt.subject in ("", confirmation.requester_subject)
        and matches(pattern=halt.action_pattern, name=confirmation.action)
    )


def _stops(halts: Sequence[Halt], viewer: User) -> list[Stop]:
    if not halts:
        return []
    people = {halt.subject for halt in halts} | {str(halt.set_by_id) for halt in halts}
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
        for halt in halts
    ]


def _program(client_id: str) -> Value:
    known = askers.asker(client_id)
    return known.host if known.since or known.ours else values.value(client_id)

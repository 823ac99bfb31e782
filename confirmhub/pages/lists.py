"""Confirmations as rows of a list: the inbox, the history, what somebody asked lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.utils import timezone

from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.screen import check_value
from confirmhub.confirmations.states import OPEN, Result, Status
from confirmhub.pages import askers, values, words
from confirmhub.pages.askers import Asker
from confirmhub.pages.values import Gist, Value
from confirmhub.pages.words import Moment, State


@dataclass(frozen=True, slots=True)
class Line:
    """A confirmation as one row of a list."""

    id: UUID
    question: Value
    action: Value
    gist: Gist
    """The first of the arguments, to tell one row from the next."""
    check: str
    asker: Asker
    account: Value | None
    asked: Moment
    age: str
    due: Moment
    left: str
    state: State
    opens: bool
    view_digest: str
    requester: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Crowd:
    """Several questions of one requester that wait at once. `shown` is what denying them all would send."""

    asker: Asker
    account: Value | None
    count: int
    shown: str


def lines(confirmations: Sequence[Confirmation], *, viewer: User) -> list[Line]:
    """Rows for the inbox and the history. Asks as often for many as for few."""
    now = timezone.now()
    names = askers.names({row.requester_subject for row in confirmations}, viewer=viewer)
    programs = askers.askers({row.requester_client_id for row in confirmations})
    return [
        Line(
            id=row.id,
            question=values.value(row.question),
            action=values.value(row.action),
            gist=values.gist(row.arguments),
            check=check_value(row.view_digest),
            asker=programs[row.requester_client_id],
            account=askers.account(row, viewer=viewer, names=names),
            asked=words.moment(row.requested_at),
            age=words.ago(now - row.requested_at),
            due=words.moment(row.decide_by),
            left=words.span(row.decide_by - now),
            state=state_of(row),
            # What nobody decided in time has no page: too late reads as never was.
            opens=not is_too_late(row),
            view_digest=bytes(row.view_digest).hex(),
            requester=(row.requester_client_id, row.requester_subject),
        )
        for row in confirmations
    ]


def crowds(waiting: Sequence[Line]) -> list[Crowd]:
    """The requesters of two or more of these questions."""
    theirs: dict[tuple[str, str], list[Line]] = {}
    for row in waiting:
        theirs.setdefault(row.requester, []).append(row)
    return [
        Crowd(
            asker=rows[0].asker,
            account=rows[0].account,
            count=len(rows),
            shown=" ".join(f"{row.id}:{row.view_digest}" for row in rows),
        )
        for rows in theirs.values()
        if len(rows) > 1
    ]


def is_too_late(confirmation: Confirmation) -> bool:
    """It expired before anybody decided."""
    return confirmation.effective_status is Status.EXPIRED and confirmation.redeem_by is None


def state_of(confirmation: Confirmation) -> State:
    """Where it stands, in words."""
    return words.state(
        confirmation.effective_status, result_of(confirmation), allowed=confirmation.redeem_by is not None
    )


def result_of(confirmation: Confirmation) -> Result | None:
    """What was reported of its execution, if anything was."""
    try:
        return Result(confirmation.outcome.result)
    except ObjectDoesNotExist:
        return None


def standing(confirmation: Confirmation, *, votes: int) -> str:
    """What an open page is compared with, for programs: `pending 0`, `redeemed 1 succeeded`."""
    status, result = confirmation.effective_status, result_of(confirmation)
    return f"{status} {votes} {result}" if result else f"{status} {votes}"


def is_over(confirmation: Confirmation) -> bool:
    """Nothing can change any more."""
    status = confirmation.effective_status
    return status not in OPEN and (status is not Status.REDEEMED or result_of(confirmation) is not None)

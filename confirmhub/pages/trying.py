"""The rehearsal on the first page: a harmless confirmation, through the same ledger as any other.

A newcomer asks, decides, spends the yes, and sees the second spending refused. Nothing is behind it.
"""

from __future__ import annotations

import secrets
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from confirmhub.confirmations import ledger
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.errors import ConfirmationError
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result
from confirmhub.oauth.clients import OURSELVES
from confirmhub.pages.refusals import refuse
from confirmhub.pages.views import person

ACTION = "try_it"
QUESTION = "Rehearsal: print three copies of a report?"
SUMMARY = "Just a rehearsal. Look at the path: it holds a character that you would not have seen."
SEEN = Observation(
    facts=(("Kind", "a rehearsal: no such file exists"), ("Effect", "none, whatever you answer")),
    fingerprint="rehearsal",
)


@require_POST
@login_required
def try_it(request: HttpRequest) -> HttpResponse:
    """Ask for the rehearsal, and go to its page. Asked twice, it is one question."""
    try:
        confirmation = ledger.request(
            requester=_requester(person(request)),
            action=_action(),
            summary=SUMMARY,
            observation=SEEN,
            question=QUESTION,
        )
    except ConfirmationError as exc:
        return refuse(request, exc, confirmation_id=None)
    return redirect("pages:confirm", confirmation.id)


@require_POST
@login_required
def spend(request: HttpRequest, confirmation_id: UUID) -> HttpResponse:
    """Spend the yes of a rehearsal, as an executor would: redeem, act (here: nothing), report."""
    try:
        receipt = ledger.redeem(
            confirmation_id=confirmation_id,
            requester=_requester(person(request)),
            action=_action(),
            # A new key each time: pressed again, this is a second spending, not a lost answer.
            redemption_key=secrets.token_urlsafe(16),
        )
        ledger.report_outcome(
            receipt=receipt, result=Result.SUCCEEDED, detail="Nothing was done, as announced."
        )
    except ConfirmationError as exc:
        return refuse(request, exc, confirmation_id=confirmation_id)
    return redirect("pages:confirm", confirmation_id)


def _requester(user: User) -> Principal:
    return Principal(client_id=OURSELVES, subject=str(user.pk))


def _action() -> Action:
    return Action(
        audience=settings.PUBLIC_URL,
        name=ACTION,
        arguments={"path": "/srv/reports/2026/Q3-\u202efdp.exe", "copies": 3, "recursive": False},
    )

"""What an operator does to a confirmation: a form for each move, which asks why, and one call of the ledger.

There is no approving here, of one or of many: that takes the confirm page, which shows the whole to somebody
whom the policy names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from confirmhub import display
from confirmhub.confirmations import errors, ledger, queries
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Result, Status
from confirmhub.review import acts, wording
from confirmhub.review.acts import Act, Case, ReasonForm

DETAIL, QUEUE = (
    "admin:confirmations_confirmation_change",
    "admin:confirmations_confirmation_changelist",
)
OPERATE = "confirmations.change_confirmation"
AT_ONCE = 100  # questions that are denied together at most; a page of the list holds fewer


class ResolveForm(ReasonForm):
    """What was found out of an execution that nobody reported on."""

    result = forms.ChoiceField(
        label="What came of it",
        choices=[
            (str(Result.SUCCEEDED), "Succeeded: it was done"),
            (str(Result.FAILED), "Failed: it was not"),
        ],
        widget=forms.RadioSelect,
    )
    reason = acts.reason_field("The record keeps it for good.", label="Note: how you found out")
    field_order = ("result", "reason")


@dataclass(frozen=True, slots=True)
class Move:
    """One move. `fits` says where it makes sense; whether it may happen is the ledger's to say."""

    name: str
    title: str
    button: str
    means: str
    done: str
    fits: Callable[[Confirmation], bool]
    run: Callable[[UUID, User, dict[str, str]], object]
    form: type[ReasonForm] = ReasonForm
    harms: bool = True


def _deny(confirmation_id: UUID, operator: User, said: dict[str, str]) -> None:
    ledger.deny(confirmation_id=confirmation_id, operator=operator, reason=said["reason"])


def _cancel(confirmation_id: UUID, operator: User, said: dict[str, str]) -> None:
    ledger.cancel(confirmation_id=confirmation_id, requester=operator, reason=said["reason"])


def _revoke(confirmation_id: UUID, operator: User, said: dict[str, str]) -> None:
    ledger.revoke(confirmation_id=confirmation_id, revoker=operator, reason=said["reason"])


def _resolve(confirmation_id: UUID, operator: User, said: dict[str, str]) -> None:
    ledger.resolve_outcome(
        confirmation_id=confirmation_id,
        operator=operator,
        result=Result(said["result"]),
        note=said["reason"],
    )


MOVES = {
    move.name: move
    for move in (
        Move(
            "deny",
            "Deny this question",
            "Deny",
            "The answer is no, whoever was asked. It cannot be used, now or later.",
            "Denied.",
            lambda row: row.effective_status is Status.PENDING,
            _deny,
        ),
        Move(
            "cancel",
            "Cancel this question",
            "Cancel the question",
            "It is withdrawn without an answer: nobody is asked any more, and the program may ask again.",
            "Cancelled.",
            lambda row: row.effective_status is Status.PENDING,
            _cancel,
        ),
        Move(
            "revoke",
            "Revoke this approval",
            "Revoke",
            "The yes is taken back while nobody has used it.",
            "Revoked.",
            lambda row: row.effective_status is Status.APPROVED,
            _revoke,
        ),
        Move(
            "resolve",
            "Record the outcome",
            "Record it",
            "The yes was spent, and who spent it never said what came of it. Record what you have found out. "
            "It is recorded once and not changed after.",
            "Recorded.",
            lambda row: row.status == Status.REDEEMED and not row.has_outcome,
            _resolve,
            ResolveForm,
            harms=False,
        ),
    )
}


def above() -> tuple[str, str]:
    """The list, as the first page that is named above another."""
    return "Confirmations", reverse(QUEUE)


def fitting(row: Confirmation) -> list[Move]:
    """The moves that make sense where this one stands."""
    return [move for move in MOVES.values() if move.fits(row)]


def operator(request: HttpRequest, *, permission: str = OPERATE) -> User:
    """Who is signed in and has this permission.

    Raises:
        PermissionDenied: They have not.
    """
    if not isinstance(request.user, User) or not request.user.has_perm(permission):
        raise PermissionDenied
    return request.user


def one(request: HttpRequest, *, confirmation_id: UUID, move: Move, page: dict[str, object]) -> HttpResponse:
    """The form of a move, and the move. `page` is what every page of the review is given."""
    person = operator(request)
    row = queries.list_for_operator().filter(id=confirmation_id).first()
    if row is None:
        raise Http404
    form = move.form(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        refusal = _run(move, confirmation_id, person, form.cleaned_data)
        if refusal is None:
            messages.success(request, move.done)
        else:
            messages.error(request, f"Nothing was changed. {refusal}")
        return redirect(DETAIL, confirmation_id)
    if not move.fits(row):
        messages.warning(request, f"Nothing to do: this is {row.effective_status}.")
        return redirect(DETAIL, confirmation_id)
    back = reverse(DETAIL, args=[row.id])
    act = Act(
        title=move.title,
        means=move.means,
        button=move.button,
        crumbs=[above(), ("Confirmation", back)],
        back=back,
        cases=_cases([row]),
        harms=move.harms,
    )
    return acts.page(request, act, form=form, context=page)


def deny_marked(
    request: HttpRequest, *, marked: Sequence[str], page: dict[str, object]
) -> HttpResponse | None:
    """The form that denies what was marked in the list, and the denials. None: back to the list.

    Each is a move of its own. What was settled meanwhile stays as it is.
    """
    person = operator(request)
    rows = list(queries.list_for_operator().filter(id__in=_ids(marked)).order_by("requested_at"))
    waiting = [row for row in rows if MOVES["deny"].fits(row)]
    said = "reason" in request.POST
    form = ReasonForm(request.POST if said else None)
    if said and form.is_valid():
        refusals = [_run(MOVES["deny"], row.id, person, form.cleaned_data) for row in rows]
        denied = refusals.count(None)
        messages.add_message(
            request,
            messages.SUCCESS if denied == len(rows) else messages.WARNING,
            f"Denied: {denied}. No longer waiting, and left as they were: {len(rows) - denied}.",
        )
        return None
    if not waiting:
        messages.warning(request, "None of those still waits for an answer. Nothing was changed.")
        return None
    move, many, left = MOVES["deny"], len(waiting), len(rows) - len(waiting)
    stay = f" {left} of those that were marked no longer wait{'s' if left == 1 else ''} and stay as they are."
    act = Act(
        title=f"Deny {many} question{'s' if many > 1 else ''}",
        means=move.means + (stay if left else ""),
        button=f"{move.button} all {many}" if many > 1 else f"{move.button} it",
        crumbs=[above()],
        back=reverse(QUEUE),
        cases=_cases(waiting),
        marked=[str(row.id) for row in waiting],
    )
    return acts.page(request, act, form=form, context=page)


def _run(move: Move, confirmation_id: UUID, person: User, said: dict[str, str]) -> str | None:
    """Make the move; say why the ledger refused, if it did."""
    try:
        move.run(confirmation_id, person, said)
    except errors.NotFound as exc:
        raise Http404 from exc
    except errors.NotPermitted as exc:
        raise PermissionDenied from exc
    except errors.ConfirmationError as exc:
        return str(exc)
    return None


def _ids(marked: Sequence[str]) -> list[UUID]:
    found = []
    for each in marked[:AT_ONCE]:
        try:
            found.append(UUID(each))
        except ValueError:
            continue
    return found


def _cases(rows: Sequence[Confirmation]) -> list[Case]:
    hosts = wording.hosts(row.requester_client_id for row in rows)
    return [
        Case(
            title=display.text(row.question),
            rows=[
                ("status", wording.status(row)),
                ("action", wording.from_left(display.text(row.action))),
                ("requester", wording.from_left(hosts[row.requester_client_id])),
                ("asked", wording.when(row.requested_at)),
                ("arguments", wording.flagged(wording.arguments(row))),
            ],
        )
        for row in rows
    ]

"""The one place where a refusal of the ledger becomes a page: nothing was changed, and what to do now."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from confirmhub.confirmations import errors
from confirmhub.pages import values, words


@dataclass(frozen=True, slots=True)
class Refusal:
    """One answer: its status, its headline, and a sentence on what to do."""

    status: HTTPStatus
    title: str
    advice: str


_GONE = Refusal(HTTPStatus.NOT_FOUND, "There is nothing here for you", "")
_ANSWERED_BEFORE = Refusal(
    HTTPStatus.CONFLICT,
    "You have answered before",
    "Your first answer stands; others have yet to give theirs.",
)

REFUSALS: dict[type[errors.ConfirmationError], Refusal] = {
    # These two have no page of their own: they read as a page that never was (404.html).
    errors.NotFound: _GONE,
    errors.Expired: _GONE,
    errors.ViewChanged: Refusal(
        HTTPStatus.CONFLICT,
        "What you saw is not what this asks for",
        "The page you answered from shows something else than what is recorded. Read it again first.",
    ),
    errors.AlreadyDecided: Refusal(
        HTTPStatus.CONFLICT,
        "This was decided before",
        "Your answer came too late to be counted. The receipt says what was decided, and by whom.",
    ),
    errors.NotApprover: Refusal(
        HTTPStatus.FORBIDDEN,
        "This is not yours to decide",
        "The rule for this action names other people. Your answer was not counted.",
    ),
    errors.SignInTooOld: Refusal(
        HTTPStatus.FORBIDDEN,
        "Your sign-in is too old for this",
        "The rule for this action asks for a fresh one. Sign in again, read the page again, and decide then.",
    ),
    errors.Busy: Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Somebody else is deciding right now",
        "Your answer was not counted. Open the page again in a few seconds.",
    ),
    errors.Unavailable: Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The database did not answer in time",
        "Open the page again in a few seconds: it says whether your answer was counted.",
    ),
    errors.PolicyDenies: Refusal(
        HTTPStatus.FORBIDDEN,
        "The rules do not allow this",
        "The rule for this action has changed since it was asked for.",
    ),
    errors.TooManyOpen: Refusal(
        HTTPStatus.TOO_MANY_REQUESTS,
        "Too many questions are open",
        "Decide on some of those that wait for you first.",
    ),
    errors.AlreadyRedeemed: Refusal(
        HTTPStatus.CONFLICT,
        "This yes was spent before",
        "A yes can be spent once. Whoever tries again, with whatever it holds, gets this answer.",
    ),
    errors.Pending: Refusal(
        HTTPStatus.CONFLICT, "Nobody has decided yet", "There is no yes to spend so far. Decide first."
    ),
    errors.Denied: Refusal(HTTPStatus.CONFLICT, "This was denied", "There is no yes to spend."),
    errors.Revoked: Refusal(
        HTTPStatus.CONFLICT, "The yes was taken back", "There is no yes to spend any more."
    ),
    errors.Cancelled: Refusal(HTTPStatus.CONFLICT, "The question was withdrawn", "There is no yes to spend."),
    errors.ActionDiffers: Refusal(
        HTTPStatus.CONFLICT,
        "The action is another one",
        "The yes was for something else, so it was not spent.",
    ),
    errors.TargetChanged: Refusal(
        HTTPStatus.CONFLICT,
        "The target has changed",
        "It is not what was shown when you decided. Nothing was done.",
    ),
    errors.InvalidAction: Refusal(
        HTTPStatus.BAD_REQUEST,
        "That action cannot be asked for",
        "It could not be shown whole and unmistakably.",
    ),
    errors.NotRedeemed: Refusal(
        HTTPStatus.CONFLICT, "The yes was not spent", "So there is no receipt of its spending."
    ),
    errors.PageNeeded: Refusal(
        HTTPStatus.CONFLICT,
        "This is decided on its page",
        "The rule for this action takes no answer from a program. Open the page and decide there.",
    ),
    errors.NotPermitted: Refusal(
        HTTPStatus.FORBIDDEN,
        "You are not allowed to do that",
        "Your account lacks the permission. Ask the person who runs this confirmhub.",
    ),
    errors.Halted: Refusal(
        HTTPStatus.CONFLICT,
        "Redemptions are stopped",
        "The yes was not spent. It can be while it lasts, once an operator lets redemptions go on.",
    ),
    errors.AlreadyReported: Refusal(
        HTTPStatus.CONFLICT, "The result was reported before", "A result is recorded once."
    ),
}


# What these refuse is settled, so its page is a receipt.
_SETTLED = (
    errors.AlreadyDecided,
    errors.AlreadyRedeemed,
    errors.Cancelled,
    errors.Denied,
    errors.Revoked,
)


def refuse(
    request: HttpRequest,
    exc: errors.ConfirmationError,
    *,
    confirmation_id: UUID | None,
    still_waiting: bool = False,
) -> HttpResponse:
    """Answer with the page of this refusal. `still_waiting` says that others have yet to decide.

    Raises:
        Http404: For what reads as a page that never was.
    """
    refusal = _ANSWERED_BEFORE if still_waiting else REFUSALS[type(exc)]
    if refusal is _GONE:
        raise Http404
    spent = words.moment(exc.redeemed_at) if isinstance(exc, errors.AlreadyRedeemed) else None
    context = {
        "refusal": refusal,
        "spent": spent,
        "confirmation_id": confirmation_id,
        "settled": isinstance(exc, _SETTLED) and not still_waiting,
        "halted": values.value(exc.reason) if isinstance(exc, errors.Halted) else None,
        "sign_in_again": isinstance(exc, errors.SignInTooOld) and confirmation_id is not None,
    }
    response = render(request, "pages/refused.html", context, status=refusal.status)
    if isinstance(exc, errors.Busy | errors.Pending | errors.TooManyOpen):
        response.headers["Retry-After"] = str(exc.retry_after)
    return response

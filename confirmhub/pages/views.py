"""Where a person decides: inbox, confirm page, history. A browser session opens them, and nothing else does.

GET and HEAD change nothing, so link previews and mail scanners change nothing. A decision is one POST, and
is never carried through a sign-in: after it, the whole page comes again.
"""

from __future__ import annotations

import json
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from confirmhub.confirmations import ledger, queries
from confirmhub.confirmations.errors import (
    AlreadyDecided,
    Busy,
    ConfirmationError,
    NotApprover,
    NotFound,
    SignInTooOld,
    ViewChanged,
)
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Status, Verdict
from confirmhub.pages import lists, screens, values
from confirmhub.pages.errors import busy
from confirmhub.pages.forms import DecisionForm, DenialsForm, ReasonForm, SearchForm
from confirmhub.pages.refusals import refuse

HISTORY_ROWS = 25
SEARCHED_ROWS = 500
RECENT_ROWS = 6
COMPARED_ROWS = 50  # among so many of a requester's last questions, one to compare with is looked for
INBOX_ROWS = 100
DENIED_TOGETHER = "Denied together with all that this requester asked."


@require_safe
@login_required
def inbox(request: HttpRequest) -> HttpResponse:
    """The first page: what waits for the person signed in, the most urgent first."""
    viewer = person(request)
    waiting = list(queries.list_waiting_for(approver=viewer)[: INBOX_ROWS + 1])
    lines = lists.lines(waiting[:INBOX_ROWS], viewer=viewer)
    context = {
        "lines": lines,
        "crowds": lists.crowds(lines),
        "more": len(waiting) > INBOX_ROWS,
        "newest": max((round(row.requested_at.timestamp() * 1_000_000) for row in waiting), default=0),
        "now": timezone.now().isoformat(),
    }
    return render(request, "pages/inbox.html", context)


@require_safe
@login_required
def history(request: HttpRequest) -> HttpResponse:
    """What was settled lately, with a search."""
    viewer = person(request)
    form = SearchForm(request.GET)
    if not form.is_valid():
        raise BadRequest
    query: str = form.cleaned_data["q"]
    if query:
        settled = queries.find_settled_for(
            approver=viewer,
            matches=lambda texts: _matches(texts, query),
            among=SEARCHED_ROWS,
            limit=HISTORY_ROWS + 1,
        )
    else:
        settled = queries.list_settled_for(approver=viewer, limit=HISTORY_ROWS + 1)
    context = {
        "lines": lists.lines(settled[:HISTORY_ROWS], viewer=viewer),
        "more": len(settled) > HISTORY_ROWS,
        "query": query,
        "rows": SEARCHED_ROWS if query else HISTORY_ROWS,
    }
    return render(request, "pages/history.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def confirm(request: HttpRequest, confirmation_id: UUID) -> HttpResponse:
    """The question while it waits, the receipt once it is settled; a POST decides."""
    if request.method == "POST":
        return _decide(request, confirmation_id)
    viewer = person(request)
    confirmation = _find(confirmation_id, viewer)
    if confirmation.effective_status is not Status.PENDING:
        return render(request, "pages/receipt.html", {"screen": screens.screen(confirmation, viewer=viewer)})
    requester = Principal(confirmation.requester_client_id, confirmation.requester_subject)
    recent = queries.list_recent_of(requester=requester, limit=RECENT_ROWS + 1)
    past = [row for row in recent if row.id != confirmation.id][:RECENT_ROWS]
    before = queries.last_approved_like(confirmation=confirmation, among=COMPARED_ROWS)
    same = queries.last_approved_same(confirmation=confirmation, among=COMPARED_ROWS)
    context = {
        "screen": screens.screen(confirmation, viewer=viewer, before=before, same=same),
        "past": lists.lines(past, viewer=viewer),
        # Whose agent asked may see what others decide on. The ledger holds to it; this only says so.
        "may_decide": queries.may_decide(confirmation=confirmation, approver=viewer),
    }
    return render(request, "pages/confirm.html", context)


@require_POST
@login_required
def revoke(request: HttpRequest, confirmation_id: UUID) -> HttpResponse:
    """Take an approval back while nobody has used it."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        raise BadRequest
    try:
        ledger.revoke(
            confirmation_id=confirmation_id, revoker=person(request), reason=form.cleaned_data["reason"]
        )
    except ConfirmationError as exc:
        return refuse(request, exc, confirmation_id=confirmation_id)
    return redirect("pages:confirm", confirmation_id)


@require_POST
@login_required
def deny_all(request: HttpRequest) -> HttpResponse:
    """Deny what one requester asks, as far as it was on the screen. There is no such thing for approving.

    Each is a decision of its own. What was settled meanwhile, or says something else than was shown, stays as
    it is; what still waits is on the page that follows.
    """
    form = DenialsForm(request.POST)
    if not form.is_valid():
        raise BadRequest
    for shown in form.cleaned_data["shown"].split(" "):
        confirmation_id, _, digest = shown.partition(":")
        try:
            ledger.decide(
                confirmation_id=UUID(confirmation_id),
                approver=person(request),
                verdict=Verdict.DENY,
                digest_shown=digest,
                reason=DENIED_TOGETHER,
            )
        except (NotFound, NotApprover, AlreadyDecided, SignInTooOld, ViewChanged):
            continue
        except Busy:
            return busy()  # each wait takes seconds, and the rest would wait for the same
    return redirect("pages:inbox")


@require_safe
def damaged(request: HttpRequest, path: str) -> HttpResponse:
    """A link to a confirmation that was cut or mistyped: no number of any could look like that."""
    del request, path
    raise BadRequest


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Where browsers look for an icon that no page of ours has named."""
    del request
    return redirect(static("confirmhub/icon.svg"))


def person(request: HttpRequest) -> User:
    """The person signed in; the views that call this are behind `login_required`."""
    assert isinstance(request.user, User)
    return request.user


def _decide(request: HttpRequest, confirmation_id: UUID) -> HttpResponse:
    approver = person(request)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        raise BadRequest
    try:
        ledger.decide(
            confirmation_id=confirmation_id,
            approver=approver,
            verdict=Verdict(form.cleaned_data["verdict"]),
            digest_shown=form.cleaned_data["digest_shown"],
            reason=form.cleaned_data["reason"],
        )
    except AlreadyDecided as exc:
        found = _find(confirmation_id, approver)  # too late reads as never was
        waiting = found.effective_status is Status.PENDING
        return refuse(request, exc, confirmation_id=confirmation_id, still_waiting=waiting)
    except ConfirmationError as exc:
        return refuse(request, exc, confirmation_id=confirmation_id)
    return redirect("pages:confirm", confirmation_id)


def _find(confirmation_id: UUID, viewer: User) -> Confirmation:
    """The confirmation, for somebody who may see it.

    Raises:
        Http404: It never was, it is not theirs, or nobody decided in time. All three read the same.
    """
    try:
        confirmation = queries.get_for_approver(confirmation_id=confirmation_id, approver=viewer)
    except NotFound as exc:
        raise Http404 from exc
    if lists.is_too_late(confirmation):
        raise Http404
    return confirmation


def _matches(texts: queries.Texts, query: str) -> bool:
    wanted = query.casefold()
    if any(wanted in text.casefold() for text in texts[:-1]):
        return True
    arguments = values.texts(list(json.loads(texts.arguments).items()))
    return any(wanted in text.casefold() for text in arguments)

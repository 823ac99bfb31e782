"""What a stop covers, for whoever has just set it, and whether a name in it may be misspelt."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import OperationalError

from confirmhub import display
from confirmhub.confirmations import queries
from confirmhub.confirmations.models import Halt
from confirmhub.oauth import clients
from confirmhub.review import wording


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a stop reaches, with words for it."""

    open: int | None
    """How many questions and unused approvals; None where they could not be counted in time."""

    ever_asked: bool | None
    client_known: bool
    covers: str
    doubt: str
    """Why something else may be meant; empty where nothing speaks for it."""


def of(*, halt: Halt) -> Reach:
    """Count what it covers now."""
    known = not halt.client_id or clients.describe(client_id=halt.client_id) is not clients.UNKNOWN
    try:
        cover = queries.covered_by(halt=halt)
    except OperationalError:  # of very many rows; the stop is in force all the same
        return Reach(None, None, known, "How much it covers could not be counted in time.", "")
    now = "1 open confirmation" if cover.open == 1 else f"{cover.open:,} open confirmations"
    covers = f"It covers {now}, and all that are asked for until it is lifted."
    return Reach(cover.open, cover.ever, known, covers, _doubt(halt, known=known, ever=cover.ever))


def _doubt(halt: Halt, *, known: bool, ever: bool) -> str:
    # It may be meant: a stop can come before the program does.
    if ever:
        return ""
    what = "Nothing that it covers was ever asked for."
    if not known:
        what = f"No program with the id {display.short(halt.client_id, wording.SHORT)} is known here."
    return f"{what} If it is misspelt, what you meant is not stopped."

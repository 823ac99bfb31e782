"""The rounds of a question: what the host can do, what it carries between them, how long each is held."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from confirmhub import display
from confirmhub.confirmations import waiting
from confirmhub.confirmations.errors import SOON, Busy
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.states import Mode, Status
from mcp_bridge import answers, auth

# Hosts are known to end a tool call after 60 s, and proxies an idle response; a third of that leaves
# room for slow networks. The SDKs' clients give up with an error after 10 rounds.
HOLD = dt.timedelta(seconds=20)
SPREAD = 0.25  # of a round's length
LAST = 8

MOST_WAITING = 5_000  # in one process
MOST_OF_ONE = 2_500  # of them of one caller
# Likewise while their tools look at what a person would be asked about: some 200 MB, where all of them hang.
MOST_LOOKING = 5_000
MOST_LOOKING_OF_ONE = 2_500

_places, _looks = waiting.Places(), waiting.Places()

PAGE, FORM = "page", "form"  # what a request is called, and its answer, by the way it asks


@dataclass(frozen=True, slots=True)
class State:
    """What the host carries, sealed by the SDK. A name and a count; the ledger has all the rest."""

    confirmation_id: uuid.UUID
    number: int
    shown: str = ""
    """The view digest, in hex, of the question in the host's form; empty where the host opens a page."""

    @classmethod
    def of(cls, plaintext: str) -> Self:
        confirmation_id, number, shown = plaintext.split(" ")
        return cls(uuid.UUID(confirmation_id), int(number), shown)

    def __str__(self) -> str:
        return f"{self.confirmation_id} {self.number} {self.shown}"

    @property
    def next(self) -> State:
        return replace(self, number=self.number + 1)


def is_modern(ctx: Context[Any, Any]) -> bool:
    """Whether this request's protocol has rounds. A state proves nothing: old requests may carry one too."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_open_pages(ctx: Context[Any, Any]) -> bool:
    """Whether the host declared URL elicitation. `elicitation: {}` means forms alone."""
    declared = _declared(ctx)
    return declared is not None and declared.url is not None


def can_show_forms(ctx: Context[Any, Any]) -> bool:
    """Whether the host declared form elicitation."""
    declared = _declared(ctx)
    return declared is not None and (declared.form is not None or declared.url is None)


def _declared(ctx: Context[Any, Any]) -> ElicitationCapability | None:
    """MCP 2026-07-28: each request declares it. What a request of the old protocol says does not count."""
    capabilities = ctx.client_capabilities if is_modern(ctx) else None
    return capabilities.elicitation if capabilities else None


def ask(confirmation: Confirmation) -> InputRequiredResult:
    """Have the host offer the page to the person. The link opens nothing: the page asks for a sign-in."""
    who = "People of a group decide" if confirmation.mode == Mode.APPROVE else "Read and decide"
    message = (
        f"{display.text(confirmation.question)} {who} on the page, which shows exactly what will be done and "
        f"the check value {answers.check(confirmation)}."
    )
    question = ElicitRequestURLParams(message=message, url=answers.page(confirmation.id))
    return InputRequiredResult(
        input_requests={PAGE: ElicitRequest(params=question)},
        request_state=str(State(confirmation.id, 1)),
    )


def once_more(state: State) -> InputRequiredResult:
    """Have the host come back. Without a request in it, or the person would be asked again each time."""
    return InputRequiredResult(request_state=str(state.next))


def answer(ctx: Context[Any, Any], state: State) -> ElicitResult | None:
    """What the host answers to what it was asked in this state; None: nothing yet."""
    found = (ctx.input_responses or {}).get(FORM if state.shown else PAGE)
    return found if isinstance(found, ElicitResult) else None


async def hold(
    confirmation_id: uuid.UUID, ctx: Context[Any, Any], *, within: dt.timedelta | None = None
) -> Status | None:
    """Wait until it is no longer pending, at most `within` or a round; return what it is then.

    None: there is no place left to wait in, so that nothing is known but what was read before.

    Raises:
        ToolError: The caller closed its request meanwhile, or its token is good no more. The confirmation is
            as it was.
        RuntimeError: The tool was called other than over HTTP.
    """
    receive = _request(ctx).receive
    try:
        with _places.one(auth.caller(), most=MOST_WAITING, each=MOST_OF_ONE):
            status = await waiting.settled_for(receive, confirmation_id, within=within or _a_round())
    except (waiting.Crowded, Busy):
        return None
    # A yes that comes now is not for a call that nobody waits for. It keeps for the next one.
    if status is None:
        raise _closed()
    await _check_token()
    return status


@contextmanager
def place_to_look() -> Iterator[None]:
    """Hold a place while the running call's tool looks at its target: the tool may hang.

    Raises:
        Busy: There is none left, or none for this caller.
    """
    try:
        with _looks.one(auth.caller(), most=MOST_LOOKING, each=MOST_LOOKING_OF_ONE):
            yield
    except waiting.Crowded as exc:
        raise Busy(retry_after=SOON) from exc


async def is_undecided(confirmation: Confirmation, ctx: Context[Any, Any]) -> bool:
    """Whether nobody has decided, also after a wait of a round where there is a place for it.

    Raises:
        ToolError, RuntimeError: As `hold`.
    """
    if confirmation.effective_status is not Status.PENDING:
        return False
    return await hold(confirmation.id, ctx) in (None, Status.PENDING)


async def check_caller(ctx: Context[Any, Any]) -> None:
    """Refuse a call that has waited for its turn to act, and has nobody to act for now.

    Raises:
        ToolError, RuntimeError: As `hold`.
    """
    if await _request(ctx).is_disconnected():
        raise _closed()
    await _check_token()


def _request(ctx: Context[Any, Any]) -> Request:
    request: Request | None = ctx.request_context.request
    if request is None:
        raise RuntimeError("A tool that waits was called other than over HTTP.")
    return request


def _closed() -> ToolError:
    """MCP 2026-07-28, transports: a request that is closed is cancelled."""
    return ToolError("The request was closed while it waited. Nothing was done.")


async def _check_token() -> None:
    """Much can end while a call waits: the grant, the program, the account."""
    if not await auth.is_still_good():
        raise ToolError("The access token is good for this no more. Nothing was done.")


def _a_round() -> dt.timedelta:
    """Of differing length: hosts that came at once, as after a restart, are not to come back at once too."""
    return HOLD * (1 - SPREAD * random.random())  # noqa: S311 - nothing is secret about it

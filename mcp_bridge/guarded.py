"""What the author of a guarded tool writes, as a value; and where the tools that are installed are found."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

from confirmhub import display
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.errors import InvalidAction
from confirmhub.confirmations.models import MAX_QUESTION
from confirmhub.confirmations.receipts import Receipt
from confirmhub.oauth.scopes import SCOPES

SHOWN = 100  # characters of a name that is none


class NotNow(ToolError):
    """Raised by `observe` where it cannot look at present. It says nothing of the target.

    Any other ToolError says that the target is not one to act on, and takes an approval back.
    """


@dataclass(frozen=True, kw_only=True)
class Guarded[Arguments: BaseModel]:
    """A tool whose effect a person allows first, each time.

    `observe` and `execute` may block and use the ORM: they run in a thread, and so many at once as there
    are. Or they are coroutine functions, which run on the event loop, as many as are called; there `observe`
    is cancelled after half a minute, and `execute` never. Both may raise ToolError, whose text reaches the
    model. `execute` gets what `observe` saw right before, and must act on that target or not at all; it says
    what it did in a sentence. It runs at most once for a receipt.

    Raises:
        ImproperlyConfigured: No call of it could end well; the text says why.
    """

    name: str
    title: str
    description: str
    question: str
    """What the person is asked, at most 200 characters, such as "Delete this file?"."""

    arguments: type[Arguments]
    """The input model. What it validates to is what is shown, digested and executed."""

    scopes: frozenset[str]
    """The scopes that a token needs besides `confirm:request` and `confirm:redeem`."""

    observe: Callable[[Arguments], Observation | Awaitable[Observation]]
    execute: Callable[[Receipt, Arguments, Observation], str | Awaitable[str]]
    unfinished: Callable[[uuid.UUID, Arguments], str] = field(default=lambda *_: "")
    """Where to look, in a sentence, when `execute` was cut off for the confirmation of this id."""

    one_transaction: bool = False
    """Whether `execute` changes rows of the service's own database and nothing else.

    Then it runs in one transaction with the redemption and the outcome: all three happen exactly once, or
    none. What it raises undoes everything, and leaves the yes to be used.
    """

    def __post_init__(self) -> None:
        if faults := " ".join(self._faults_in_kind()) or " ".join(self._faults()):
            raise ImproperlyConfigured(f"{display.short(self.name, SHOWN)}: {faults}")

    def _faults_in_kind(self) -> Iterator[str]:
        arguments: object = self.arguments  # the author's, who may check no types
        if not (isinstance(arguments, type) and issubclass(arguments, BaseModel)):
            yield "Its arguments must be a class that derives from pydantic.BaseModel."
        if not isinstance(self.scopes, frozenset):
            yield "Its scopes must be a frozenset of names."
        for name, takes in (("observe", "(arguments)"), ("execute", "(receipt, arguments, seen)")):
            if not _fits(getattr(self, name), takes.count(",") + 1):
                yield f"It must be possible to call its {name} as {name}{takes}."

    def _faults(self) -> Iterator[str]:
        for name, of in self.arguments.model_fields.items():
            if of.alias or of.validation_alias or of.serialization_alias or of.exclude:
                yield f"The argument {name} must have no alias and not be excluded."
        try:
            Action(audience=settings.MCP_RESOURCE, name=self.name, arguments={})
        except InvalidAction as exc:
            yield str(exc)
        if not 0 < len(self.question) <= MAX_QUESTION:
            yield f"The question has {len(self.question)} characters; it takes 1 to {MAX_QUESTION}."
        if unknown := sorted(self.scopes - set(SCOPES)):
            yield f"There is no scope {', '.join(unknown)}; there are {', '.join(SCOPES)}."
        if "ctx" in self.arguments.model_fields:
            yield "An argument cannot be named ctx, which is how the bridge hands over a call."
        if self.one_transaction and not self.execute_blocks:
            yield (
                "A transaction belongs to a thread, so with one_transaction=True execute must be a plain "
                "function. Write it with def, not with async def."
            )

    @cached_property
    def observe_blocks(self) -> bool:
        """Whether `observe` needs a thread."""
        return not is_coroutine_function(self.observe)

    @cached_property
    def execute_blocks(self) -> bool:
        """Whether `execute` needs a thread."""
        return not is_coroutine_function(self.execute)

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of the definition: no approval outlives a change of what the tool says it does."""
        schema = self.arguments.model_json_schema()
        words = [self.name, self.title, self.description, self.question, schema, sorted(self.scopes)]
        return hashlib.sha256(json.dumps(words, sort_keys=True).encode("ascii")).digest()

    def action(self, arguments: Arguments) -> Action:
        """The action that these arguments stand for, built anew wherever it is needed.

        Raises:
            TypeError: The model leaves something out of its JSON, or masks it there, which would be
                executed and was never shown.
        """
        action = Action(
            audience=settings.MCP_RESOURCE,
            name=self.name,
            arguments=arguments.model_dump(mode="json"),
            tool_digest=self.digest,
        )
        if self.arguments.model_validate(action.arguments) != arguments:
            raise TypeError(f"the arguments of {self.name} are not what their JSON validates to")
        return action


def _fits(function: object, number: int) -> bool:
    """Whether it can be called with so many arguments, as far as it says."""
    try:
        inspect.signature(function).bind(*range(number))  # type: ignore[arg-type]  # it may be anything
    except TypeError:
        return False
    except ValueError:
        return True  # one of those in C that do not say
    return True


async def call_author[R](
    in_thread: Callable[..., Awaitable[Any]] | None,
    function: Callable[..., R | Awaitable[R]],
    *args: object,
    within: float | None = None,
) -> R:
    """What an author's function gives, called in a thread; or, where that is None, on the event loop.

    There it is cancelled after `within` seconds. A thread runs to its end.

    Raises:
        NotNow: It was cancelled.
        RuntimeError: It ended with what would end the process.
        BaseException: As the function does else.
    """
    try:
        given = await in_thread(function, *args) if in_thread else function(*args)
        if not inspect.isawaitable(given):
            return given
        found: R = await (given if within is None else in_time(given, within))
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as exc:
        # A tool has no say in that. In a thread it is no other.
        raise RuntimeError(f"The tool ended with {type(exc).__name__}.") from exc
    return found


async def in_time[R](look: Awaitable[R], within: float) -> R:
    """What comes of a look at a target, which is cancelled after so many seconds.

    Raises:
        NotNow: It was cancelled.
    """
    try:
        async with asyncio.timeout(within) as limit:
            return await look
    except TimeoutError as exc:
        if not limit.expired():
            raise  # of the author's own making
        raise NotNow(_UNSEEN) from exc


_UNSEEN = "The tool did not get to see its target in time. Nothing was done. Try again later."


def is_coroutine_function(function: Callable[..., object]) -> bool:
    """Whether calling it blocks nobody, and gives something to await."""
    called = type(function).__call__  # of an object that is called like a function
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


_installed: dict[str, Guarded[Any]] = {}


def install(guarded: Guarded[Any]) -> None:
    """Let redeem_confirmation find the tool."""
    _installed[guarded.name] = guarded


def find(action: str) -> Guarded[Any] | None:
    """The guarded tool that performs this action, if one is installed."""
    return _installed.get(action)

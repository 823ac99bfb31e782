"""How every process logs: no text from outside passes for a record, hides in one, or brings a secret."""

from __future__ import annotations

import copy
import datetime as dt
import json
import logging
import traceback
from contextvars import ContextVar
from typing import Any

from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.http import Http404
from django.http.multipartparser import MultiPartParserError

from confirmhub import display

CONTINUED = "    | "
request_id: ContextVar[str] = ContextVar("request_id", default="")  # of the request that is being answered
# Django answers these with a 4xx. They tell of the request, and a trace of our own code tells nothing more.
_REFUSALS = (BadRequest, Http404, MultiPartParserError, PermissionDenied, SuspiciousOperation)


class Formatter(logging.Formatter):
    """One line for a record, with what is hidden in it made visible; a traceback in lines that are set in."""

    def format(self, record: logging.LogRecord) -> str:
        text = message(record)
        if id_ := request_id.get():
            text = f"{text} [{id_}]"
        # A copy: what is cached in a record is seen by other handlers' formatters too. An empty one, to be
        # filled: making a record asks for the thread, the task and the process, which this one has.
        shown = logging.LogRecord.__new__(logging.LogRecord)
        shown.__dict__ = record.__dict__ | {"msg": text, "args": None, "message": text}
        shown.asctime = self.formatTime(shown, self.datefmt)
        lines = (f"{CONTINUED}{line}".rstrip() for line in self.trace(record))
        return "\n".join([self.formatMessage(shown), *lines])

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the base's name
        """The traceback of an error and of those that led to it, each with what may be told of its words."""
        if ei[1] is None:
            return super().formatException(ei)
        told = traceback.TracebackException.from_exception(ei[1])
        _spare(told, ei[1])
        return "".join(told.format()).rstrip("\n")

    def trace(self, record: logging.LogRecord) -> list[str]:
        """The lines of the traceback and of the stack, where the record has them."""
        texts = [
            self.formatException(record.exc_info) if record.exc_info else record.exc_text,
            self.formatStack(record.stack_info) if record.stack_info else None,
        ]
        return [_visible(line) for text in texts if text for line in text.split("\n")]


class JsonFormatter(Formatter):
    """One JSON object a record, in ASCII, for what collects logs."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": message(record),
        }
        if id_ := request_id.get():
            said["request_id"] = id_
        if trace := self.trace(record):
            said["trace"] = "\n".join(trace)
        return json.dumps(said)


def message(record: logging.LogRecord) -> str:
    """What the record says, on one line, with what is hidden in it made visible."""
    given = record.args
    if isinstance(given, tuple) and any(isinstance(each, BaseException) for each in given):
        told = tuple(words(each) if isinstance(each, BaseException) else each for each in given)
        return display.text((str(record.msg) % told).rstrip("\n"))
    return display.text(record.getMessage().rstrip("\n"))


def words(error: BaseException) -> str:
    """What may be told of an error: its first line, since rows, statements and input follow it; no path."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"[Errno {error.errno}] {error.strerror}"
    return str(error).partition("\n")[0]


class Discreet(logging.Filter):
    """Keeps traces out of what are the sender's own faults."""

    def filter(self, record: logging.LogRecord) -> bool | logging.LogRecord:
        refused = isinstance(record.exc_info[1] if record.exc_info else None, _REFUSALS)
        security = record.name.startswith("django.security.")
        if not refused and not security:
            return True
        changed = copy.copy(record)
        changed.exc_info = changed.exc_text = None
        if security:
            changed.levelno, changed.levelname = logging.WARNING, "WARNING"
        return changed


def _spare(told: traceback.TracebackException, error: BaseException) -> None:
    left: list[tuple[traceback.TracebackException, BaseException]] = [(told, error)]
    while left:
        part, inner = left.pop()
        # The tests see that this is how it is said in other words.
        part._str = words(inner)  # type: ignore[attr-defined] # noqa: SLF001 - there is no public way
        led = [(part.__cause__, inner.__cause__), (part.__context__, inner.__context__)]
        led += zip(part.exceptions or (), getattr(inner, "exceptions", ()), strict=False)
        left += [(before, cause) for before, cause in led if before is not None and cause is not None]


def _visible(line: str) -> str:
    """A line of a traceback, which keeps its place."""
    words = line.lstrip(" ")
    return " " * (len(line) - len(words)) + (display.text(words) if words else "")

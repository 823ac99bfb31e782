"""One record is one line, and shows what it is made of."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import DisallowedHost, TooManyFieldsSent
from django.db import DatabaseError
from django.utils.module_loading import import_string

from confirmhub.logs import JsonFormatter

FORGED = "x\n2026-01-01 00:00:00,000 INFO confirmhub.ops all is well\x1b[2K\r\u202e\u2028\x85y"


@pytest.fixture
def written() -> Callable[..., str]:
    """What a record becomes on its way through the handler that the settings name."""
    form = dict(settings.LOGGING["formatters"]["line"])
    formatter = import_string(form.pop("()"))(form["format"])
    discreet = import_string(settings.LOGGING["filters"]["discreet"]["()"])()

    def write(name: str, level: int, message: str, *args: object, exc: BaseException | None = None) -> str:
        trace: Any = (type(exc), exc, exc.__traceback__) if exc else None
        record = logging.LogRecord(name, level, "f.py", 1, message, args, trace)
        passed = discreet.filter(record)
        assert passed
        return str(formatter.format(record if passed is True else passed))

    return write


def raised(exc: Exception) -> Exception:
    try:
        raise exc
    except type(exc):
        caught = sys.exception()
    assert isinstance(caught, type(exc))
    return caught


def test_a_message_stays_on_its_line_whatever_it_holds(written: Callable[..., str]) -> None:
    line = written("confirmhub.oauth", logging.INFO, "for %s", FORGED)

    assert line.isprintable()
    assert "⟨U+000A⟩" in line
    assert "⟨U+001B⟩" in line
    assert "⟨U+202E⟩" in line


def test_a_trace_keeps_its_lines_and_none_of_them_begins_a_record(written: Callable[..., str]) -> None:
    first, *rest = written("a", logging.ERROR, "failed", exc=raised(ValueError(FORGED))).split("\n")

    assert first.endswith("ERROR a failed")
    assert rest[0] == "    | Traceback (most recent call last):"
    assert all(line.startswith("    |") and line.isprintable() for line in rest)
    assert any("raise exc" in line for line in rest)


REFUSED = DatabaseError("refused\nDETAIL:  Failing row contains (s3cret)")
MISSING = FileNotFoundError(2, "No such file or directory", "/srv/s3cret")


def stopped(**led_here: Exception) -> Exception:
    """An error that another one led to, as its cause or as its context."""
    error = RuntimeError("stopped")
    for how, before in led_here.items():
        setattr(error, f"__{how}__", before)
    return error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (REFUSED, ["DatabaseError: refused"]),
        (MISSING, ["FileNotFoundError: [Errno 2] No such file or directory"]),
        (stopped(cause=REFUSED), ["DatabaseError: refused", "RuntimeError: stopped"]),
        (stopped(context=stopped(cause=MISSING)), ["No such file or directory", "RuntimeError: stopped"]),
        (ExceptionGroup("two", [REFUSED, stopped()]), ["two (2 sub-exceptions)", "refused", "stopped"]),
    ],
)
def test_a_trace_repeats_no_row_and_no_path_that_an_error_names(
    written: Callable[..., str], error: Exception, says: list[str]
) -> None:
    record = logging.LogRecord("a", logging.ERROR, "f.py", 1, "failed", (), (type(error), error, None))

    for text in (written("a", logging.ERROR, "failed", exc=error), JsonFormatter().format(record)):
        assert "s3cret" not in text
        assert [words for words in says if words not in text] == []


def test_a_trace_of_very_many_errors_is_written(written: Callable[..., str]) -> None:
    error = first = RuntimeError("first")
    for number in range(2_000):
        later = RuntimeError(f"{number}\nDETAIL: s3cret")
        error.__context__, error = later, later

    text = written("a", logging.ERROR, "failed", exc=first)

    assert text.count("RuntimeError: ") == 2_001
    assert "s3cret" not in text


def test_a_record_that_asks_for_a_trace_where_nothing_failed_is_written() -> None:
    record = logging.LogRecord("a", logging.ERROR, "f.py", 1, "odd", (), (None, None, None))

    assert json.loads(JsonFormatter().format(record))["message"] == "odd"


def test_a_message_repeats_none_of_them_either(written: Callable[..., str]) -> None:
    assert written("a", logging.WARNING, "failed: %s", REFUSED).endswith("failed: refused")
    assert written("a", logging.WARNING, "failed: %s", MISSING).endswith("No such file or directory")
    assert written("a", logging.WARNING, "%(x)s", {"x": 1}).endswith("a 1")


def test_a_record_in_json_has_its_trace_and_its_stack() -> None:
    record = logging.LogRecord("a", logging.ERROR, "f.py", 1, "failed\n", (), None)
    record.exc_text, record.stack_info = f"Traceback\n  {FORGED}", "Stack\n  here"

    said = json.loads(line := JsonFormatter().format(record))

    assert line.isascii()
    assert said["message"] == "failed"
    first, forged, *rest = said["trace"].split("\n")
    assert (first, rest[-2:]) == ("Traceback", ["Stack", "  here"])
    assert forged == "  x"
    assert all(line.isprintable() for line in rest)


@pytest.mark.parametrize("fault", [DisallowedHost, TooManyFieldsSent])
def test_a_refused_request_is_a_warning_of_one_line(
    written: Callable[..., str], fault: type[Exception]
) -> None:
    line = written(
        f"django.security.{fault.__name__}", logging.ERROR, "bad", exc=raised(fault("Invalid\nname"))
    )

    assert line.endswith(f"WARNING django.security.{fault.__name__} bad")


def test_a_failure_of_ours_keeps_its_trace(written: Callable[..., str]) -> None:
    assert "ValueError: y" in written("django.request", logging.ERROR, "bad", exc=raised(ValueError("y")))

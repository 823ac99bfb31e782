"""A bad setting is one line that says what to do, before anything is started with it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from confirmhub.ops import misconfigured
from confirmhub.ops.up import serving_at
from tests.ops.service import ROOT, Service

type Up = Callable[..., Service]

BAD = {
    "FILE_ROOTS": ("/nonexistent", "make that folder, or name one that is there"),
    "PUBLIC_URL": ("http://example.org", "must be https"),
    "RETAIN_DAYS": ("abc", "must be a whole number of days above 0"),
    "EMAIL_PORT": ("smtp", "must be a number from 1 to 65535"),
    "DATABASE_URL": ("postgresql://me@host:port/name", "must be like postgresql://"),
    "GUARDED_TOOLS": ("my-tools", "must be modules separated by commas"),
    "SECRET_KEY": ("short", "must have at least 32 characters"),
    "BEHIND_TLS_PROXY": ("yes", "must be 'true' or 'false'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_setting_is_one_line_and_nothing_is_started(up: Up, folder: Path, name: str) -> None:
    value, says = BAD[name]

    service = up(settings={name: value})

    assert service.wait_for_end() == 1
    assert len(service.said) == 1, service.text
    assert service.text.startswith(f"confirmhub: {name}")
    assert says in service.text
    assert "ImproperlyConfigured" not in service.text
    assert not (folder / "state" / "pg").exists()


def test_manage_says_it_too(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "confirmhub.ops", "manage", "check"],
        cwd=ROOT,
        env={"CONFIRMHUB_STATE": str(folder / "state"), "PATH": os.environ["PATH"], "RETAIN_DAYS": "abc"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1)
    assert "RETAIN_DAYS must be a whole number of days" in ran.stderr


def test_tools_that_do_not_load_are_one_line_at_the_first_start_and_at_the_next(up: Up, folder: Path) -> None:
    (folder / "broken.py").write_text("BALANCE = 1 / 0\n")
    settings = {"GUARDED_TOOLS": "broken", "PYTHONPATH": str(folder)}

    first = up(settings=settings)
    assert first.wait_for_end() == 1
    started = up().wait_until_ready()
    assert serving_at(folder / "state") == f"http://localhost:{started.port}"
    started.process.terminate()
    assert started.wait_for_end() == 0
    assert serving_at(folder / "state") is None
    second = up(settings=settings)
    assert second.wait_for_end() == 1

    # One line each: the first death is the last, since it would only die again.
    for service in (first, second):
        whose, says = service.said
        assert whose.startswith("confirmhub: starting on ")
        assert says == (
            "confirmhub: GUARDED_TOOLS: broken does not load: ZeroDivisionError: division by zero"
            f" ({folder}/broken.py, line 1): correct it, or leave it out.\n"
        )


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "has no tools(): write one"),
        ("def tools(:", "does not load: invalid syntax"),
        ("import not_there", "does not load: ModuleNotFoundError: No module named 'not_there' ("),
        ("def tools():\n    raise KeyError('scope')", "mine.py, line 2): correct it, or leave it out."),
        ("import os\nos.environ['BANK']", "does not load: KeyError: 'BANK' ("),
        ("import os\nos.environ['BANK']", "mine.py, line 2): correct it, or leave it out."),
        ("import no_bank.here", "does not load: ModuleNotFoundError: No module named 'no_bank' ("),
        ("def tools():\n    pass", "mine.tools() must return a list of what as_tool makes of each tool."),
        (None, "there is no module mine: correct the name, install its package, or put its folder on"),
    ],
)
def test_each_way_in_which_tools_do_not_load_has_its_advice(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    source: str | None,
    says: str,
) -> None:
    if source is not None:
        (tmp_path / "mine.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    with (
        override_settings(GUARDED_TOOLS=["mine"]),
        pytest.raises(SystemExit) as ended,
        misconfigured.telling(),
    ):
        misconfigured.load_tools()

    said = capsys.readouterr().err
    assert ended.value.code == os.EX_CONFIG
    assert says in said.splitlines()[-1]
    assert ("Traceback" in said) == ("must return" not in says)  # for the author, in the log


DEFINITION = """
from pydantic import BaseModel, Field
from mcp_bridge.guard import Guarded, as_tool
class Nothing(BaseModel):
    {fields}
async def act(*_): ...
words = dict(name="do_it", title="Do", description="Does.", question="Do it?", scopes=frozenset())
words |= dict(arguments=Nothing, observe=print, execute=act)
def tools():
    return [as_tool(Guarded(**words | dict({wrong})))]
"""


@pytest.mark.parametrize(
    ("wrong", "fields", "says"),
    [
        ("name='do it'", "...", "An action's name is a letter and up to 99"),
        ("question=''", "...", "The question has 0 characters; it takes 1 to 200."),
        ("question='?' * 201", "...", "The question has 201 characters; it takes 1 to 200."),
        ("scopes=frozenset(['bank:pay'])", "...", "There is no scope bank:pay; there are confirm:read,"),
        ("one_transaction=True", "...", "Write it with def, not with async def."),
        ("", "ctx: int", "An argument cannot be named ctx"),
        ("", "to: str = Field(alias='payee')", "The argument to must have no alias and not be excluded"),
        ("", "to: str = Field('', exclude=True)", "The argument to must have no alias and not be excluded"),
        ("scopes='files:delete'", "...", "Its scopes must be a frozenset of names."),
        ("arguments=Nothing()", "...", "Its arguments must be a class that derives from pydantic.BaseModel."),
        ("arguments=dict", "...", "Its arguments must be a class that derives from pydantic.BaseModel."),
        ("observe=lambda: 1", "...", "It must be possible to call its observe as observe(arguments)."),
        ("observe=None", "...", "It must be possible to call its observe as observe(arguments)."),
        ("execute=lambda a, b: a", "...", "as execute(receipt, arguments, seen)."),
    ],
)
def test_a_definition_of_which_no_call_could_end_well_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, fields: str, says: str
) -> None:
    (tmp_path / "wrong.py").write_text(DEFINITION.format(wrong=wrong, fields=fields))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wrong", raising=False)
    with (
        override_settings(GUARDED_TOOLS=["wrong"]),
        pytest.raises(ImproperlyConfigured, match=re.escape(says)) as raised,
    ):
        misconfigured.load_tools()
    assert f"({tmp_path}/wrong.py, line 10)" in str(raised.value)

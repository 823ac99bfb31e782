"""No value from outside reaches anybody's eyes unrendered: what the code does with such values.

Where people, models and terminals read, each field that somebody outside has written is handed to a renderer
or only compared, or it stands in `KNOWN` with a reason. Elsewhere no text and no log line is built of it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest

from confirmhub import display
from confirmhub.oauth.clients import ClientLabel
from confirmhub.pages import values
from confirmhub.review import wording

ROOT = Path(__file__).resolve().parent.parent
MODULES = {
    str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8"))
    for package in ("confirmhub", "mcp_bridge")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "migrations" not in path.parts
}
SHOWING = (
    "confirmhub/pages/",
    "confirmhub/review/",
    "confirmhub/notifications/",
    "confirmhub/oauth/",
    "confirmhub/ops/management/",
    "mcp_bridge/",
)

# Fields that somebody outside has written, and those that are such by their owner.
OUTSIDE = """
summary facts fact_items arguments argument_items question action actor detail failure reason settled_reason
requester_client_id requester_subject username get_username get_full_name email user_agent client_name
client.name label.name accepted.name application.name
"""
REQUEST = "GET POST"  # forms read these; no text is built of them
# What bears such a name and is ours: a tool's author has written it, or Django.
OURS = """
guarded.action guarded.arguments guarded.question self.arguments self.question call.arguments call.action
admin.action answer.action wording.arguments
"""
RENDERERS: dict[str, Callable[[str], object]] = {
    "confirmhub.display.text": display.text,
    "confirmhub.display.short": lambda raw: display.short(raw, 64),
    "confirmhub.display.show": display.show,
    "confirmhub.pages.values.value": values.value,
    "confirmhub.pages.values.line": values.line,
    "confirmhub.pages.values.rows": lambda raw: values.rows([(raw, [raw])]),
    "confirmhub.pages.values.compared": lambda raw: values.compared([(raw, raw)], before=[("a", raw)]),
    "confirmhub.pages.values.gist": lambda raw: values.gist(json.dumps({raw: [raw]})),
    "confirmhub.review.wording.text": wording.text,
    "confirmhub.review.wording.host": lambda raw: [
        wording.host(raw, replace(LABEL, name=raw, is_service=is_service)) for is_service in (False, True)
    ],
}
LABEL = ClientLabel(host="\u202e\u200b\n", verified=True, name="", redirect="", since=None)
BUILDERS = {"format", "format_html", "format_html_join", "join", "mark_safe"}
LOGS = {"debug", "info", "warning", "error", "exception", "critical", "log"}

# Each a file and a function, then what it reads there, then why that is no sink.
KNOWN = """
notifications/arguments.py lines: confirmation.argument_items | a loop, which renders key and value
notifications/delivery.py send_message: recipient.email | an address to send to
notifications/hooks.py payload: confirmation.action | JSON for programs; ASCII by the action's own rule
notifications/hooks.py resolved: confirmation.requester_client_id | hashed
notifications/messages.py _facts: confirmation.requester_client_id confirmation.requester_subject | by Names
oauth/clients.py label: client.name | a label, whose readers are held to the rule
oauth/clients.py service_names: label.name | both who ask for it, `wording.names` and `Names`, render it
oauth/connections.py withdraw: row.requester_client_id row.requester_subject | looked up and written
oauth/views.py post: accepted.name | stored, and told in JSON to the program that sent it
ops/management/commands/hub.py _list: row.requester_client_id row.requester_subject | looked up
ops/management/commands/hub.py _show: row.requester_client_id row.requester_subject row.question row.action
    row.argument_items row.fact_items row.summary row.settled_reason outcome.detail | a loop renders each line
ops/management/commands/hub.py _show: event.detail | made to a dictionary, and rendered then
ops/management/commands/hub.py _stop: halt.reason | JSON in ASCII
ops/management/commands/hub.py _record: row.requester_client_id row.requester_subject row.action
    row.argument_items row.summary row.question row.settled_reason outcome.detail | JSON in ASCII
pages/askers.py names: viewer.get_username user.get_username | names by account; who draws them renders them
pages/askers.py account: confirmation.requester_subject | looked up, and rendered where it is found
pages/drift.py find: before.fact_items confirmation.fact_items | made to dictionaries, and rendered then
pages/lists.py lines: row.requester_subject row.requester_client_id | looked up
pages/record.py happenings: event.actor | looked up
pages/record.py _happening: event.actor | taken apart, and rendered then
pages/screens.py screen: confirmation.requester_subject confirmation.requester_client_id | looked up
pages/screens.py screen: confirmation.fact_items | a loop, which renders label and fact
pages/screens.py _why: confirmation.settled_reason | its last line renders it
pages/screens.py _outcome_detail: confirmation.outcome.detail | its last line renders it
pages/stops.py _covers: confirmation.action | compared with a pattern
pages/views.py confirm: confirmation.requester_client_id confirmation.requester_subject | looked up
pages/views.py _matches: texts.arguments | searched in
review/admin.py told: row.requester_client_id row.action | a query, encoded
review/admin.py requester: row.requester_client_id | looked up
review/admin.py subject: row.requester_subject | looked up
review/admin.py seen: row.fact_items | a loop, which renders label and fact
review/moves.py _cases: row.requester_client_id | looked up
review/queue.py _lines: row.requester_client_id row.requester_subject | looked up
review/records.py who: row.actor | searched for the account's number
review/records.py words: row.detail | made to a dictionary, and rendered then
review/wording.py host: label.name | its last line renders it
review/wording.py arguments: row.argument_items | a loop, which renders key and value
mcp_bridge/acting.py _redeem_and_act: came.detail shared.detail | the tool's own words
mcp_bridge/acting.py _report: came.detail | recorded
mcp_bridge/acting.py _replay: receipt.detail | the same, of the first time
mcp_bridge/acting.py _recorded: outcome.detail | the same
mcp_bridge/acting.py unfinished: confirmation.arguments | made to the tool's arguments
mcp_bridge/answers.py waiting: confirmation.fact_items | a loop, which renders label and fact
mcp_bridge/errors.py _with_reason: exc.reason | rendered in the next line
mcp_bridge/forms.py question: confirmation.fact_items confirmation.argument_items | loops, which render each
mcp_bridge/guard.py redeem: confirmation.arguments | made to the tool's arguments
mcp_bridge/guard.py _changes: before.fact_items confirmation.fact_items | compared; forms renders them
mcp_bridge/tools/files.py _observe: seen.facts | put with others in an observation
mcp_bridge/tools/hub.py of: row.action row.arguments | ASCII by the action's own rule
mcp_bridge/tools/hub.py redeem_confirmation: found.action | looked up
mcp_bridge/tools/hub.py report_outcome: found.action | looked up
mcp_bridge/tools/hub.py _next: row.action | looked up
mcp_bridge/tools/moving.py _observe: seen.facts | put with others in an observation
"""


def known() -> set[tuple[str, str, str]]:
    found = set()
    for entry in KNOWN.replace("\n    ", " ").strip().splitlines():
        place, _, read = entry.partition(" | ")[0].partition(": ")
        path, function = place.split(" ")
        path = path if path.startswith("mcp_bridge") else f"confirmhub/{path}"
        found |= {(path, function, expression) for expression in read.split()}
    return found


def test_what_is_read_where_people_read_is_rendered_or_known() -> None:
    found = {
        (path, function, expression)
        for path, tree in MODULES.items()
        if path.startswith(SHOWING)
        for function, expression in Reads(tree, path).found
    }

    assert found - known() == set()
    assert known() - found == set()  # what is there no more goes from the list, too


def test_elsewhere_no_text_is_built_of_it() -> None:
    found = {
        f"{path}: {expression}"
        for path, tree in MODULES.items()
        for expression in built_raw(tree, path)
        if not path.startswith(SHOWING) or expression.endswith((".GET", ".POST"))
    }

    # The name of a row in Django's admin. An action's name is ASCII by its own rule.
    assert found == {"confirmhub/confirmations/models.py: self.action"}


class Reads(ast.NodeVisitor):
    """The reads of fields from outside that stand in no renderer, each with the function that it is in."""

    def __init__(self, tree: ast.Module, path: str = "") -> None:
        self.names = imported(tree, path)
        self.inside = [""]
        self.found: list[tuple[str, str]] = []
        self.visit(tree)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(func=ast.Name("getattr"), args=[owner, ast.Constant(str(name)), *_]):
                self.visit_Attribute(ast.Attribute(owner, name, ast.Load()))
            case _ if qualified(node.func, self.names) not in RENDERERS:
                self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """It ends in yes or no."""

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_If(self, node: ast.If) -> None:
        self._condition(node.test)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        # Of `x and text(x)` the first comes out only where it is empty. Of `x or y` either may.
        for value in node.values[:-1] if isinstance(node.op, ast.And) else ():
            self._condition(value)
        for value in node.values[-1:] if isinstance(node.op, ast.And) else node.values:
            self.visit(value)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load) and is_outside(node):
            self.found.append((self.inside[-1], ast.unparse(node)))
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.inside.append(node.name)
        self.generic_visit(node)
        self.inside.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def _condition(self, node: ast.expr) -> None:
        # Whether there is one tells nothing of it.
        asked = node.operand if isinstance(node, ast.UnaryOp) else node
        if not isinstance(asked, ast.Attribute):
            self.visit(node)


def is_outside(node: ast.Attribute) -> bool:
    expression = ast.unparse(node)
    last_two = ".".join(expression.split(".")[-2:])
    return last_two not in OURS.split() and bool({node.attr, last_two} & set(OUTSIDE.split()))


def imported(tree: ast.Module, path: str) -> dict[str, str]:
    """What each name of a module stands for: so that another thing of a renderer's name is none."""
    module = path.removesuffix(".py").replace("/", ".")
    names = {node.name: f"{module}.{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def qualified(function: ast.expr, names: dict[str, str]) -> str:
    head, _, rest = ast.unparse(function).partition(".")
    return ".".join(filter(None, (names.get(head, ""), rest)))


def built_raw(tree: ast.Module, path: str = "") -> Iterator[str]:
    """The values from outside that go into a text or a log line without a renderer around them."""
    names = imported(tree, path)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and builds(node.func)):
            yield from raw_in(node, names)


def builds(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        return function.attr in BUILDERS or (function.attr in LOGS and owner in ("log", "logger"))
    return isinstance(function, ast.Name) and function.id in BUILDERS


def raw_in(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and qualified(child.func, names) in RENDERERS:
            continue
        if isinstance(child, ast.Attribute) and (is_outside(child) or child.attr in REQUEST.split()):
            yield ast.unparse(child)
        else:
            yield from raw_in(child, names)


IMPORTS = "from confirmhub import display\nfrom confirmhub.pages import values\n"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("say(row.summary)", ["row.summary"]),
        ('message = {"text": row.action, "by": event.actor}', ["row.action", "event.actor"]),
        ("say(display.text(row.summary), values.value(row.reason))", []),
        ("say(display.text(row.summary) + row.summary)", ["row.summary"]),
        ("say(display.unshow(row.summary), values.texts(row.facts))", ["row.summary", "row.facts"]),
        ("say(other.text(row.summary), text(row.detail))", ["row.summary", "row.detail"]),
        ("def text(x): return x\nsay(text(row.failure))", ["row.failure"]),
        ("say(getattr(row, 'reason', ''), getattr(row, name))", ["row.reason"]),
        ("say(client.name, group.name, label.name.upper())", ["client.name", "label.name"]),
        ("return_ = row.question if row.summary else display.text(row.summary)", ["row.question"]),
        ("say(row.email and display.text(row.email), row.email or 1)", ["row.email"]),
        ("if row.action == 'a' and row.summary: say(1)", ["row.summary"]),
        ("row.summary = 1", []),
    ],
)  # fmt: skip
def test_the_rule_for_reads_finds_what_it_looks_for(source: str, found: list[str]) -> None:
    assert [expression for _, expression in Reads(ast.parse(IMPORTS + source)).found] == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('f"Asked: {row.summary}"', ["row.summary"]),
        ('f"Asked: {row.question.upper()}"', ["row.question"]),
        ('f"Asked: {display.text(row.summary)}"', []),
        ('log.info("by %s", user.get_username())', ["user.get_username"]),
        ('format_html("<b>{}</b>", request.GET["q"])', ["request.GET"]),
        ('", ".join(value for _, value in row.fact_items)', ["row.fact_items"]),
        ("say(row.summary)", []),
    ],
)
def test_the_rule_for_texts_finds_what_it_looks_for(source: str, found: list[str]) -> None:
    assert list(built_raw(ast.parse(IMPORTS + source))) == found


@pytest.mark.parametrize("name", RENDERERS)
def test_a_renderer_renders(name: str) -> None:
    raw = "a\u202eb\u200b\n\u3164\U000e0041\x1b"

    shown = list(texts(RENDERERS[name](raw)))

    assert "U+202E" in "".join(shown)
    assert not set("".join(shown)) & set(raw) - {"a", "b"}


def texts(found: object) -> Iterator[str]:
    """Every text in what a renderer returns."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, list | tuple):
        for each in found:
            yield from texts(each)
    elif is_dataclass(found):
        for field in fields(found):
            yield from texts(getattr(found, field.name))

"""No value from outside reaches anybody's eyes unrendered: templates, texts that code builds, and every sink.

The first two tests read the sources, and fail at what is new until somebody has looked at it. The last one
sends hostile values through everything.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.template import engines
from django.template.base import Node, Template, VariableNode
from django.test import Client
from pytest_django import Settings

from confirmhub.confirmations import ledger, queries
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.outbox import LeasedNotice
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result, Verdict
from confirmhub.notifications import messages
from mcp_bridge import answers
from tests.factories import AUDIENCE, decide, make_pending, make_user
from tests.oauth.conftest import Host

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = sorted(
    str(path.relative_to(ROOT / "templates")) for path in (ROOT / "templates").rglob("*") if path.is_file()
)
MODULES = sorted(path for package in ("confirmhub", "mcp_bridge") for path in (ROOT / package).rglob("*.py"))

# What templates show without the tags `pieces` and `lines`, which take nothing but rendered values.
WORDS_OF_OURS = """
asks heading invitation label line.age line.asked.iso line.due.iso line.due.text line.left line.state.label
line.state.tone link lines|length name newest note.level note.message now refusal.advice refusal.title
row.depth row.kind row.level row.position rows reason title screen.approvals_needed
screen.approvals_needed|pluralize screen.asked.text screen.asker.since screen.compared_with.text
screen.due.iso screen.due.text screen.fresh_within screen.id screen.left screen.log_seal
screen.log|length screen.my_vote.at.text screen.now screen.seal screen.spent.text screen.state.label
screen.state.sentence screen.state.tone screen.usable_until.text screen.used_within screen.view_digest
spent.iso spent.text vote.at.iso vote.at.text vote.seen event.at.iso event.at.text event.what
crowd.count crowd.shown scope.words line.connection.last_used_at|date:'c' line.connection.key
count count|pluralize newer older secret token_endpoint list_url
inline_admin_formset.opts.fields|length confirmation_id drift.approved.text drift.digest event.by gist.more
line.check line.id stop.since.iso stop.since.text
line.channel line.sent line.failure one quiet.starts quiet.ends quiet.zone secret
"""
RENDERED_BEFORE = """
mail mail_folder part.text part.title value value.exact value.fingerprint recipient
field.contents field.field.name field.label|capfirst inline_admin_formset.opts.verbose_name_plural|capfirst
"""
OF_THE_REVIEW = """
block.super field field.auto_id field.errors field.help_text field.html_name field.label field.label_tag
forloop.counter halt_like left left|pluralize:"s," line.action line.arguments line.asked line.asker line.id
line.question line.status lines|length move.button move.means move.title only selection_note told
cl.result_list|length line.account line.approvals line.due kind words
cell every key label line.name line.note since table.chart table.columns|length table.key table.note
table.title tile.label tile.link tile.note tile.number tile.tone until
"""
# The OpenAPI document's own words, which nobody outside has written.
OF_THE_API = """
line refusal.name refusal.status refusal.what route.method route.name route.path route.scope route.what
row.kind row.name row.what table.title
"""
ASCII_WHEN_STORED = "line.where host redirect_host line.connection.client.host client_id audience"
TYPED_BY_THE_READER = """
query next field.errors form.non_field_errors form.username.value|default_if_none:''
way.address.value|default_if_none:'' hours.starts.value|default_if_none:'' hours.ends.value|default_if_none:''
"""
FIT = {
    *WORDS_OF_OURS.split(),
    *RENDERED_BEFORE.split(),
    *OF_THE_REVIEW.split(),
    *OF_THE_API.split(),
    *ASCII_WHEN_STORED.split(),
    *TYPED_BY_THE_READER.split(),
    'since|date:"j F Y"',
    'line.connection.last_used_at|date:"Y-m-d H:i"',
    'line.connection.scopes|join:" · "',
}

# Fields that somebody outside has written.
FIELDS = """
summary facts fact_items arguments argument_items detail reason settled_reason username get_username
get_full_name email label user_agent POST GET
"""
OUTSIDE = frozenset(FIELDS.split())
# What is built of them all the same, each with its reason.
KNOWN = {
    "mcp_bridge/answers.py: confirmation.fact_items",  # a loop, which renders value by value
    "mcp_bridge/acting.py: receipt.detail",  # what the guarded tool itself answered the first time
    "mcp_bridge/acting.py: outcome.detail",  # the same
}
RENDERERS = frozenset({"display", "values", "json"})  # json: ASCII, every control escaped
BUILDERS = frozenset({"format", "format_html", "format_html_join", "join", "mark_safe"})
LOGS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_shows_nothing_that_is_not_known_to_be_fit(name: str) -> None:
    template = engines["django"].engine.get_template(name)

    assert set(shown(template)) - FIT == set()


def shown(template: Template) -> Iterator[str]:
    for node in template.nodelist.get_nodes_by_type(Node):
        if isinstance(node, VariableNode):
            yield str(node.filter_expression.token)


def test_the_rule_for_templates_finds_what_it_looks_for() -> None:
    template = engines["django"].engine.from_string(
        "{% if a %}{% for b in c %}{{ d.summary }}{% endfor %}{% endif %}"
    )

    assert set(shown(template)) - FIT == {"d.summary"}


def test_no_text_is_built_of_raw_values() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {expression}"
        for path in MODULES
        for expression in built_raw(ast.parse(path.read_text("utf-8")))
    }

    assert found == KNOWN


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('f"Asked: {row.summary}"', ["row.summary"]),
        ('f"Asked: {row.summary.upper()}"', ["row.summary"]),
        ('f"Asked: {display.text(row.summary)}"', []),
        ('log.info("by %s", user.get_username())', ["user.get_username"]),
        ('format_html("<b>{}</b>", row.reason)', ["row.reason"]),
        ('", ".join(value for _, value in row.fact_items)', ["row.fact_items"]),
        ("row.summary", []),
    ],
)
def test_the_rule_for_texts_finds_what_it_looks_for(source: str, found: list[str]) -> None:
    assert list(built_raw(ast.parse(source))) == found


def built_raw(tree: ast.AST) -> Iterator[str]:
    """The values from outside that go into a text or a log line without a renderer around them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and builds(node.func)):
            yield from raw_in(node)


def builds(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        return function.attr in BUILDERS or (function.attr in LOGS and owner in ("log", "logger"))
    return isinstance(function, ast.Name) and function.id in BUILDERS


def raw_in(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and ast.unparse(child.func).split(".")[0] in RENDERERS:
            continue
        if isinstance(child, ast.Attribute) and child.attr in OUTSIDE:
            yield ast.unparse(child)
        else:
            yield from raw_in(child)


HIDDEN = "\u202e\u200b\x1b"


def hostile(name: str) -> str:
    """A value that is found again by its name, with what must never come out beside it."""
    return f"{name}{HIDDEN}[2K"


@pytest.mark.django_db(transaction=True)
def test_hostile_values_come_out_of_every_sink_rendered(
    settings: Settings, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    person = make_user(hostile("the-person"), is_staff=True, is_superuser=True)
    sinks = everything(person, settings)
    sinks["log"] = (caplog.text + "".join(capfd.readouterr()), ())

    for name, (text, there) in sinks.items():
        assert not set(text) & set(HIDDEN), name
        for value in there:
            assert value in text, f"{value} is not in {name}"


def everything(person: User, settings: Settings) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Text by sink, each with names of values that must be in it, so that nothing passes by being empty."""
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]
    browser = Client()
    browser.force_login(person)
    host = Host(user=person, resource=settings.MCP_RESOURCE, browser=browser)
    assert host.register(client_name=hostile("the-client")).status_code == 201
    agent = Principal(host.client_id, str(person.pk))

    def ask(name: str) -> Action:
        return Action(
            AUDIENCE, name, {hostile("the-key"): [hostile("the-value"), {hostile("deep"): "two\n\x1b"}]}
        )

    seen = Observation((("Name", hostile("the-fact")),), "etag")
    asked = make_pending(agent, action=ask("first"), summary=hostile("the-summary"), observation=seen)
    denied = decide(make_pending(agent, action=ask("second")), person, Verdict.DENY, reason=hostile("the-no"))
    revoked = decide(make_pending(agent, action=ask("third")), person)
    ledger.revoke(confirmation_id=revoked.id, revoker=person, reason=hostile("the-change"))
    failed = decide(make_pending(agent, action=ask("fourth")), person, reason=hostile("the-yes"))
    receipt = ledger.redeem(
        confirmation_id=failed.id, requester=agent, action=ask("fourth"), redemption_key="key"
    )
    ledger.report_outcome(receipt=receipt, result=Result.FAILED, detail=hostile("the-outcome"))

    def page(path: str) -> str:
        answer = browser.get(path)
        assert answer.status_code == 200, path
        return answer.content.decode()

    def mail(kind: str) -> str:
        row = queries.get_for_requester(confirmation_id=denied.id, requester=agent)
        notice = LeasedNotice(7, kind, row.id, person.pk, None, 1)
        message = messages.compose(notice=notice, confirmation=row, recipient=person)
        return message.subject + message.text + message.html

    queue, export = "/admin/confirmations/confirmation/", io.StringIO()
    consent = page(host.url())
    host.sign_in()
    call_command("export_audit", stdout=export)
    waiting = answers.waiting(
        queries.get_for_requester(confirmation_id=asked.id, requester=agent), again="ask.", approved=0
    )
    return {
        "inbox": (page("/"), ("the-person",)),
        "question": (
            page(f"/confirm/{asked.id}"),
            ("the-person", "the-client", "the-key", "the-value", "deep", "the-fact", "the-summary"),
        ),
        "denied": (page(f"/confirm/{denied.id}"), ("the-no", "the-value")),
        "revoked": (page(f"/confirm/{revoked.id}"), ("the-change",)),
        "failed": (page(f"/confirm/{failed.id}"), ("the-yes", "the-outcome")),
        "history": (page("/history"), ("the-person",)),
        "consent": (consent, ("the-client", "the-person")),
        "connected": (page("/account/hosts"), ("the-client",)),
        "queue": (page(queue), ("first",)),
        "dashboard": (page("/admin/dashboard"), ("the-person", "second")),
        "row": (page(f"{queue}{asked.id}/change/"), ("the-key", "the-value", "the-fact", "the-summary")),
        "other row": (page(f"{queue}{failed.id}/change/"), ("the-yes", "the-outcome")),
        "mail": (mail("asked"), ("the-person",)),
        "other mail": (mail("settled"), ("the-person",)),
        "bridge": (str(waiting.content[0]) + waiting.model_dump_json(), ("the-fact",)),
        "export": (export.getvalue(), ("the-no", "the-change")),
    }

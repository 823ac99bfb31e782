"""No value from outside reaches anybody's eyes unrendered: what templates show.

Fails at what is new until somebody has looked at it. `test_sinks_code` reads the code, and
`test_sinks_hostile` sends hostile values through everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.template import engines
from django.template.base import Node, Template, VariableNode
from django.template.library import TagHelperNode

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
NAMES = sorted(str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*") if path.is_file())

# What each template shows without the tags `pieces`, `lines` and `shown`, which take nothing but rendered
# values. All of it is one of these: words, times, numbers and addresses of ours; a text that the code has
# rendered (`test_sinks_code`); what is ASCII when it is stored (client ids, hosts, audiences); what the
# reader has just typed; a field that Django draws. In a filter's argument a blank is written as `~`.
FIT = """
_stopped.html: stop.since.iso stop.since.text
admin/base_site.html: block.super title
admin/confirmations/confirmation/actions.html: cl.result_list|length selection_note
admin/act.html: act.back act.button act.means block.super case.title forloop.counter id name value
admin/confirmations/confirmation/change_form.html: halt_like move.title only
admin/confirmations/confirmation/change_list.html: kind line.account line.action line.approvals line.asked
    line.asker line.id line.left line.question line.status line.then words
admin/change_list_results.html: cell header.ascending|yesno:'ascending,descending' header.class_attrib
    header.sort_priority header.text|capfirst header.url_primary header.url_remove header.url_toggle
    label|capfirst
admin/crumbs.html: here|default:title link name
admin/dashboard.html: block.super cell every key label line.name line.note name since table.chart
    table.columns|length table.key table.note table.title tile.label tile.link tile.note tile.number
    tile.tone until
admin/fields.html: field field.auto_id field.errors field.help_text field.html_name field.label
    field.label_tag form.non_field_errors
admin/index.html: entry.about entry.add entry.link entry.name forloop.counter
    forloop.parentloop.counter title
admin/record.html: field.contents field.field.label|capfirst field.field.name field.label|capfirst
    inline_admin_formset.opts.fields|length inline_admin_formset.opts.verbose_name_plural|capfirst name
api/docs.html: line refusal.name refusal.status refusal.what route.method route.name route.path
    route.scope route.what row.kind row.name row.what table.title
notifications/account.html: channel field.errors form.non_field_errors hours.ends.value|default_if_none:''
    hours.starts.value|default_if_none:'' label line.channel line.failure line.sent line.where mail
    mail_folder one quiet.ends quiet.starts quiet.zone secret value way.address.value|default_if_none:''
    words
notifications/notice.html: heading invitation label link recipient value
notifications/notice.txt: heading invitation label link recipient value
oauth2_provider/authorize.html: host redirect_host scope.words since|date:"j~F~Y"
oauth2_provider/disconnect_all.html: count
oauth2_provider/hosts.html: count count|pluralize line.connection.client.host line.connection.key
    line.connection.last_used_at|date:"Y-m-d~H:i" line.connection.last_used_at|date:'c'
    line.connection.scopes|join:"~·~" newer older
oauth2_provider/refused.html: reason
oauth2_provider/secret.html: audience client_id list_url secret token_endpoint
pages/_about.html: note.message words
pages/_asked.html: asks screen.asked.text screen.asker.since
pages/_drift.html: drift.approved.text drift.digest
pages/_gist.html: gist.more
pages/_line.html: line.age line.asked.iso line.check line.id
pages/_notes.html: note.level note.message
pages/_past.html: line.age line.state.label line.state.tone
pages/_value.html: note.message value.exact value.fingerprint
pages/_votes.html: vote.at.iso vote.at.text vote.seen
pages/_what.html: row.depth row.kind row.level row.position
    screen.compared_with.text
pages/confirm.html: screen.approvals_needed screen.approvals_needed|pluralize screen.due.iso
    screen.due.text screen.fresh_within screen.id screen.left screen.my_vote.at.text screen.now screen.seal
    screen.standing screen.used_within screen.view_digest
pages/history.html: line.state.label line.state.tone query rows
pages/inbox.html: crowd.count crowd.shown line.due.iso line.due.text line.left lines|length newest now
pages/password.html: field.errors form.non_field_errors
pages/receipt.html: event.at.iso event.at.text event.by event.what screen.id screen.log_seal
    screen.log|length screen.seal screen.spent.text screen.standing screen.state.label screen.state.sentence
    screen.state.tone screen.usable_until.text
pages/refused.html: refusal.advice refusal.title spent.iso spent.text
pages/sign_in.html: form.username.value|default_if_none:'' next
pages/signed_in.html: next
"""
# What else a template may be made of: none of these writes a value from outside.
PARTS = """
TextNode VariableNode IfNode ForNode WithNode BlockNode ExtendsNode IncludeNode LoadNode URLNode StaticNode
CsrfTokenNode CommentNode
"""
TAGS = frozenset(
    {
        "pieces",
        "lines",
        "shown",
        "signed_in",
        "stops_told",
        "anything_is_stopped",
        "paginator_number",
        "list_title",
        "above",
        "labelled",
    }
)
# The mail in plain text has nothing to escape; the queue has Django's own list of actions.
ALONE = {
    "notifications/notice.txt": {"AutoEscapeControlNode"},
    "admin/confirmations/confirmation/change_list.html": {"admin_actions"},
}


def known() -> dict[str, set[str]]:
    """What is fit to be shown, by template."""
    found: dict[str, set[str]] = {}
    for entry in FIT.replace("\n    ", " ").strip().splitlines():
        name, _, shown = entry.partition(": ")
        found[name] = {word.replace("~", " ") for word in shown.split()}
    return found


KNOWN = known()


@pytest.mark.parametrize("name", NAMES)
def test_a_template_shows_exactly_what_is_known_to_be_fit(name: str) -> None:
    template = engines["django"].engine.get_template(name)

    assert set(shown(template)) == KNOWN.get(name, set())
    assert set(other_parts(template)) == ALONE.get(name, set())


def test_every_template_that_is_known_is_there() -> None:
    assert set(KNOWN) | set(ALONE) <= set(NAMES)


def shown(template: Template) -> Iterator[str]:
    for node in template.nodelist.get_nodes_by_type(Node):
        if isinstance(node, VariableNode):
            yield str(node.filter_expression.token)


def other_parts(template: Template) -> Iterator[str]:
    """Tags that may write anything, such as `firstof`, `filter` or one that is not ours."""
    for node in template.nodelist.get_nodes_by_type(Node):
        if isinstance(node, TagHelperNode):
            if node.func.__name__ not in TAGS:
                yield node.func.__name__
        elif type(node).__name__ not in PARTS.split():
            yield type(node).__name__


@pytest.mark.parametrize(
    ("source", "found", "parts"),
    [
        ("{% if a %}{% for b in c %}{{ d.summary }}{% endfor %}{% endif %}", {"d.summary"}, set()),
        ("{{ summary|safe }}{{ a }}", {"summary|safe", "a"}, set()),
        ("{% firstof a.summary %}", set(), {"FirstOfNode"}),
        (
            "{% autoescape off %}{% filter lower %}x{% endfilter %}{% endautoescape %}",
            set(),
            {"AutoEscapeControlNode", "FilterNode"},
        ),
        ("{% load hub %}{% pieces a %}{% cycle a b %}", set(), {"CycleNode"}),
        ("{% load l10n %}{% localize on %}{{ a }}{% endlocalize %}", {"a"}, {"LocalizeNode"}),
        ("{% load admin_urls %}{% add_preserved_filters a %}", set(), {"add_preserved_filters"}),
    ],
)
def test_the_rule_finds_what_it_looks_for(source: str, found: set[str], parts: set[str]) -> None:
    template = engines["django"].engine.from_string(source)

    assert (set(shown(template)), set(other_parts(template))) == (found, parts)

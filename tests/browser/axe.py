"""axe-core, put into a page from outside, so that the page's own policy stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page

from tests import npm

SOURCE = Path(__file__).parent / "node"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]

RUN = """async ([tags, left_out]) => {
    const rules = {"target-size": {enabled: true}};  // of WCAG 2.2, and off unless it is named
    // A colour on its way to the other scheme is nobody's colour.
    await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
    const found = await axe.run({include: [["html"]], exclude: left_out.map((selector) => [selector])}, {
        runOnly: {type: "tag", values: tags}, rules, resultTypes: ["violations"]
    });
    return found.violations.flatMap(({id, help, nodes}) =>
        nodes.map(({html, failureSummary}) => `${id}: ${help}\\n  ${html}\\n  ${failureSummary}`));
}"""


def source() -> str:
    """The program, from its npm package."""
    return (npm.installed(SOURCE, name="browser-node") / "node_modules/axe-core/axe.min.js").read_text()


def violations(page: Page, *, program: str, but: Sequence[str] = ()) -> list[str]:
    """What this page does against WCAG 2.2, levels A and AA. `but` selects what is not ours to mend."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(program)
    found: list[str] = page.evaluate(RUN, [TAGS, list(but)])
    return found

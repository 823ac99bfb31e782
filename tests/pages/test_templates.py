"""Rules that hold for every template and every answer, whatever it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from confirmhub.confirmations.errors import ConfirmationError
from confirmhub.confirmations.models import Confirmation
from confirmhub.pages.refusals import REFUSALS

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STATIC = ROOT / "confirmhub/pages/static/confirmhub"

# What would show a value raw, run in the page, or reach another host.
FORBIDDEN = re.compile(
    r"\|\s*safe|autoescape\s+off|mark_safe|\bstyle\s*=|<style|<script(?![^>]*\bsrc=)|\bon\w+\s*=\s*[\"']"
    r"|javascript:|(?:src|href|action)\s*=\s*[\"']\s*(?:https?:)?//|\|urlize|\|linebreaks",
    re.IGNORECASE,
)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_a_template_shows_nothing_raw_and_reaches_no_other_host(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    if "notifications" in template.parts:
        text = re.sub(r' style="[^"{}]*"', "", text)  # a mail has no stylesheet; its styles are constants

    assert not FORBIDDEN.search(text)


@pytest.mark.parametrize(
    "line",
    [
        "{{ x|safe }}",
        '<p style="a">',
        "<script>1</script>",
        '<a onclick="x">',
        '<img src="//evil.example/x">',
    ],
)
def test_the_rule_for_templates_finds_what_it_looks_for(line: str) -> None:
    assert FORBIDDEN.search(line)


@pytest.mark.parametrize("name", ["hub.css", "hub.js", "icon.svg"])
def test_a_static_file_reaches_no_other_host(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")

    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttp|eval\(|innerHTML", text)


def test_every_refusal_of_the_ledger_has_its_page() -> None:
    def classes(base: type[ConfirmationError]) -> set[type[ConfirmationError]]:
        return {found for one in base.__subclasses__() for found in {one} | classes(one)}

    assert set(REFUSALS) == classes(ConfirmationError)


def test_a_failure_of_ours_is_answered_in_words_and_without_details(
    browser: Client, pending: Confirmation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> Confirmation:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("confirmhub.confirmations.queries.get_for_approver", fail)
    browser.raise_request_exception = False

    response = browser.get(f"/confirm/{pending.id}")

    assert response.status_code == 500
    assert "Something failed on our side" in response.content.decode()
    assert "secret" not in response.content.decode()


def test_a_foreign_host_is_refused(alice: User) -> None:
    response = Client(headers={"host": "evil.example"}).get("/sign-in")

    assert response.status_code == 400
    assert "could not be understood" in response.content.decode()


def test_a_page_with_its_files_weighs_under_40_kb(browser: Client, pending: Confirmation) -> None:
    page = browser.get(f"/confirm/{pending.id}").content

    assert (
        len(page) + sum((STATIC / name).stat().st_size for name in ("hub.css", "hub.js", "icon.svg")) < 40_000
    )

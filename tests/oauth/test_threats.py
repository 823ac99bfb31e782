"""What went wrong at others who let programs in, one by one, and the tests that hold it off here.

Files are named from the folder of tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client as Browser

from tests.test_peers import names_in

ROOT = Path(__file__).resolve().parents[2]

THREATS = {
    "a web page reaches the server by a name that it points here": (
        "bridge/test_http.py::test_a_foreign_host_is_refused_before_anything_else",
        "bridge/test_http.py::test_a_foreign_origin_is_refused_before_the_token_is_looked_at",
        "bridge/test_http.py::test_the_metadata_is_not_served_to_a_foreign_host",
        "oauth/test_metadata.py::test_the_host_header_changes_nothing",
    ),
    "one consent is taken for that of another program": (
        "oauth/test_consent.py::test_nothing_in_the_url_skips_the_page",
        "oauth/test_consent.py::test_opening_the_page_decides_nothing",
        "oauth/test_registration.py::test_a_client_that_skips_consent_cannot_be_stored",
    ),
    "a consent that was given in one browser counts in another": (
        "oauth/test_consent.py::test_a_verdict_needs_the_page_of_this_browser",
        "oauth/test_threats.py::test_over_https_the_cookies_are_of_this_host_alone",
    ),
    "a second tab spoils the first one's form, so that people turn the check off": (
        "oauth/test_threats.py::test_two_pages_that_are_open_at_once_can_both_be_answered",
    ),
    "fetching a document reaches what is inside, by a redirect or by a name that changes": (
        "oauth/test_fetcher.py::test_an_answer_that_is_no_document_is_refused",
        "oauth/test_fetcher.py::test_one_private_address_among_public_ones_is_enough_to_refuse",
        "oauth/test_fetcher.py::test_the_name_is_looked_up_once_and_that_address_dialled",
        "oauth/test_fetcher.py::test_a_server_that_drips_is_cut_off_at_the_deadline",
        "oauth/test_fetcher.py::test_every_failure_reads_the_same",
        "oauth/test_registration.py::test_a_document_is_never_fetched_for_somebody_who_is_not_signed_in",
        "oauth/test_client.py::test_an_authorization_server_at_a_private_address_is_not_reached",
    ),
    "a private range was forgotten": (
        "oauth/test_fetcher.py::test_an_address_that_not_everybody_can_reach_is_not_public",
    ),
    "the name and the logo of a program are whatever it likes": (
        "oauth/test_consent.py::test_a_name_cannot_pass_for_words_of_ours",
        "oauth/test_consent.py::test_the_page_names_host_account_redirect_and_scopes_in_words",
        "oauth/test_account.py::test_a_name_in_the_operators_list_shows_what_is_hidden_in_it",
        "oauth/test_threats.py::test_the_consent_page_loads_nothing_from_elsewhere",
    ),
    "the state of a sign-in is missing, fixed or forged": (
        "oauth/test_client.py::test_a_callback_from_elsewhere_is_not_believed",
        "oauth/test_consent.py::test_allow_goes_back_with_code_state_and_issuer",
    ),
    "somebody is signed in to an account of the attacker's and does not see it": (
        "oauth/test_consent.py::test_the_page_names_host_account_redirect_and_scopes_in_words",
        "oauth/test_threats.py::test_a_sign_in_needs_the_page_of_this_browser",
    ),
    "a parameter in the URL skips the consent": (
        "oauth/test_consent.py::test_nothing_in_the_url_skips_the_page",
    ),
    "one person's state is used by another": (
        "bridge/test_once.py::test_a_state_of_another_is_refused_by_the_boundary",
        "confirmations/test_redeem.py::test_nobody_but_the_requester_redeems",
    ),
    "a token for somewhere else is accepted": (
        "oauth/test_token.py::test_a_token_for_another_audience_or_past_its_time_finds_nobody",
        "oauth/test_services.py::test_a_services_token_opens_nothing_of_mcp",
        "bridge/test_http.py::test_a_token_that_is_not_for_us_is_refused",
        "oauth/test_client.py::test_a_resource_that_is_another_gets_no_token",
    ),
    "what is another's can be told from what is not there": (
        "pages/test_confirm.py::test_unknown_not_yours_and_too_late_read_the_same",
        "oauth/test_account.py::test_nobody_disconnects_or_sees_what_is_another_persons",
    ),
    "the agent decides on what it asked": (
        "pages/test_confirm.py::test_a_bearer_token_opens_no_page",
        "confirmations/test_rules.py::test_a_quorum_of_a_group_approves_and_the_acting_user_does_not",
    ),
}


@pytest.mark.parametrize("threat", THREATS)
def test_a_threat_is_held_off_by_tests(threat: str) -> None:
    for named in THREATS[threat]:
        file, _, name = named.partition("::")
        assert name in names_in(file)


def form_token(page: Any) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.content.decode())
    assert found
    return found[1]


def test_two_pages_that_are_open_at_once_can_both_be_answered(host: Any) -> None:
    strict = Browser(enforce_csrf_checks=True)
    strict.force_login(host.user, backend="django.contrib.auth.backends.ModelBackend")
    urls = [host.url(state="one"), host.url(state="two")]

    tokens = [form_token(strict.get(url)) for url in urls]

    assert len(set(tokens)) == 2
    for url, token in zip(urls, tokens, strict=True):
        answer = strict.post(url, {"verdict": "deny", "csrfmiddlewaretoken": token})
        assert answer.status_code == 302


def test_a_sign_in_needs_the_page_of_this_browser(host: Any) -> None:
    attackers = form_token(Browser().get("/sign-in"))
    victims = Browser(enforce_csrf_checks=True)
    victims.get("/sign-in")

    answer = victims.post(
        "/sign-in",
        {"username": "ada", "password": "correct horse battery", "csrfmiddlewaretoken": attackers},
    )

    assert answer.status_code == 403
    assert "session" not in victims.cookies


def test_the_consent_page_loads_nothing_from_elsewhere(host: Any) -> None:
    host.register(
        client_name="x", logo_uri="https://evil.example/logo.png", client_uri="https://evil.example/"
    )

    page = host.page()

    assert "evil.example" not in page.content.decode()
    assert "img-src 'self'" in page["Content-Security-Policy"]


def test_over_https_the_cookies_are_of_this_host_alone() -> None:
    names = ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE")
    code = f"from confirmhub import settings; print([getattr(settings, name) for name in {names}])"

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PUBLIC_URL": "https://confirm.example"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "['__Host-session', '__Host-csrf', True, True]"

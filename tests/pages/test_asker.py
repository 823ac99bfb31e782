"""Who asks and for whom, in the words of the page: what was checked, what is claimed, where answers go."""

from __future__ import annotations

import datetime as dt
import html
import re

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client as Browser
from django.utils import timezone

from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.models import Confirmation, Rule
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode
from confirmhub.oauth import services
from confirmhub.oauth.models import Client
from tests.factories import AUDIENCE, decide, make_pending

# Not the day on which the tests run, which other words of the page have too.
SINCE = dt.datetime(2026, 3, 12, 9, tzinfo=dt.UTC)


def connect(client_id: str, **fields: object) -> None:
    """A program as it is kept after it has connected."""
    Client.objects.create(
        client_id=client_id,
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        **fields,
    )
    Client.objects.filter(client_id=client_id).update(created=SINCE)


def asks(client_id: str, subject: str) -> Confirmation:
    return make_pending(Principal(client_id, subject), action=Action(AUDIENCE, "run", {}))


def told(browser: Browser, confirmation: Confirmation) -> str:
    """The paragraph on who asks, as a person reads it, without the time that it ends with."""
    page = browser.get(f"/confirm/{confirmation.id}").content.decode()
    (paragraph,) = re.findall(r'<p class="asker">(.*?)</p>', page, re.DOTALL)
    words = " ".join(html.unescape(re.sub(r"<[^>]*>", "", paragraph)).split())
    told, asked, at = words.rpartition(" · asked ")
    assert asked
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", at)
    return told


def test_a_program_with_a_document_is_named_by_its_verified_host(browser: Browser, alice: User) -> None:
    client_id = "https://claude.ai/oauth/client.json"
    connect(
        client_id,
        name="Your bank",
        redirect_uris="https://claude.ai/api/callback http://127.0.0.1/callback",
        registration_source=Client.RegistrationSource.CIMD,
        cimd_expires_at=timezone.now() + dt.timedelta(days=1),
    )

    assert told(browser, asks(client_id, str(alice.pk))) == (
        "claude.ai asks on your behalf host verified · calls itself “Your bank”"
        " · its answers go to https://claude.ai/api/callback · connected since 12 March 2026"
    )


def test_a_program_that_registered_itself_is_named_by_where_its_answers_go(
    browser: Browser, alice: User
) -> None:
    connect(
        "1f0c6f6a",
        name="claude.ai",
        redirect_uris="http://127.0.0.1:33418/callback",
        registration_source=Client.RegistrationSource.DCR,
    )

    assert told(browser, asks("1f0c6f6a", str(alice.pk))) == (
        "127.0.0.1:33418 asks on your behalf host not verified · calls itself “claude.ai”"
        " · its answers go to http://127.0.0.1:33418/callback · connected since 12 March 2026"
    )


def test_a_program_that_gives_no_name_is_given_none(browser: Browser, alice: User) -> None:
    connect("nameless", redirect_uris="https://host.example/cb")

    assert told(browser, asks("nameless", str(alice.pk))) == (
        "host.example asks on your behalf host not verified"
        " · its answers go to https://host.example/cb · connected since 12 March 2026"
    )


def test_a_program_that_is_known_no_more_is_unknown(browser: Browser, alice: User) -> None:
    assert told(browser, asks("gone", str(alice.pk))) == "unknown asks on your behalf host not verified"


def test_a_service_is_named_by_what_the_operators_wrote_down(browser: Browser, alice: User) -> None:
    service, _ = services.create(name="Payroll", audience="https://payroll.example/api")
    Client.objects.filter(pk=service.pk).update(created=SINCE)
    its = (
        "a service that the operators of this hub have set up"
        " · named “Payroll” by them · there since 12 March 2026"
    )
    for_her = told(browser, asks(service.client_id, str(alice.pk)))
    payers = Group.objects.create(name="payers")
    payers.user_set.add(alice)
    Rule.objects.create(name="payroll", rank=1, mode=Mode.APPROVE, approver_group=payers)

    for_itself = told(browser, asks(service.client_id, f"client:{service.client_id}"))

    assert for_her == f"payroll.example asks on your behalf {its}"
    assert for_itself == f"payroll.example asks on its own behalf, for no person {its}"


def test_the_rehearsal_says_that_nobody_asks(browser: Browser) -> None:
    browser.post("/try")

    assert told(browser, Confirmation.objects.get()) == (
        "confirmhub asks you, to show you how this works part of this service"
    )


@pytest.mark.parametrize("settled", [False, True])
def test_who_decides_for_others_reads_for_whose_account(
    stranger: Browser, bob: User, agent: Principal, *, settled: bool
) -> None:
    payers = Group.objects.create(name="payers")
    payers.user_set.add(bob)
    Rule.objects.create(name="four eyes", rank=1, mode=Mode.APPROVE, approver_group=payers)
    asked = make_pending(agent)
    if settled:
        decide(asked, bob)

    words = f"unknown {'asked' if settled else 'asks'} for the account alice host not verified"
    assert told(stranger, asked) == words


def test_what_looks_like_something_else_is_told_of_beside_the_values_too(
    browser: Browser, alice: User
) -> None:
    client_id = "https://claude.ai/oauth/client.json"
    connect(client_id, name="Cl\u0430ude", redirect_uris="https://claude.ai/api/callback")
    confirmation = make_pending(
        Principal(client_id, str(alice.pk)),
        action=Action(AUDIENCE, "run", {}),
        question="Pay p\u0430ypal?",
        observation=Observation(facts=(("B\u0430nk", "one"),), fingerprint=""),
    )

    page = browser.get(f"/confirm/{confirmation.id}").content.decode()

    blocks = re.findall(r"<small>(About [^<]*):</small>(.*?)</div>", page, re.DOTALL)
    assert [about for about, _ in blocks] == [
        "About the question",
        "About what it calls itself",
        "About the name on the left",
    ]
    assert all("CYRILLIC SMALL LETTER A" in notes for _, notes in blocks)

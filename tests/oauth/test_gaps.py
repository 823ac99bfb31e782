"""What django-oauth-toolkit leaves open as it comes, and the tests that hold each gap shut.

The first test of each row is run once more with the toolkit's own behaviour put back in place of ours, and
must fail then: a test that passes on stock settings would hold nothing. Files are named from the folder of
tests.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import oauth2_provider
import psycopg
import pytest
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.template import Context, Engine
from oauth2_provider import cimd
from oauth2_provider.oauth2_validators import OAuth2Validator, is_valid_resource_uri
from oauth2_provider.settings import oauth2_settings
from oauth2_provider.views import AuthorizationView, OAuthServerMetadataView

from confirmhub.confirmations.dsn import conninfo
from confirmhub.confirmations.lookups import Reader
from confirmhub.oauth import bearer, consent, fetcher, metadata, stepup, throttle, validator, views
from confirmhub.oauth.scopes import OPEN_TO_ALL
from confirmhub.oauth.validator import Validator
from mcp_bridge import auth as bridge
from mcp_bridge import lookups, threads
from tests.oauth.sites import VS_CODE
from tests.test_peers import names_in

type Patch = pytest.MonkeyPatch
type Given = dict[str, Any]

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True)
class Gap:
    what: str
    tests: tuple[str, ...]
    """Where each is; the first is the one that is run on stock behaviour."""

    stock: Callable[[Patch], None]
    given: Callable[[pytest.FixtureRequest], Given] = field(default=lambda _: {})
    """What the first test is given beside its fixtures, where it has many cases."""


# --- the toolkit's own behaviour, gap by gap


def any_grant_registers(patch: Patch) -> None:
    own = metadata.read
    patch.setattr(
        metadata, "read", lambda fields, **how: own({**fields, "grant_types": ["authorization_code"]}, **how)
    )


def any_address_is_a_resource(patch: Patch) -> None:
    patch.setattr(consent.resources, "is_ours", is_valid_resource_uri)


def stock_consent(patch: Patch) -> None:
    patch.setattr(consent.Authorize, "get", lambda _, request: AuthorizationView.as_view()(request))


def strict_documents(patch: Patch) -> None:
    own = metadata.read

    def read(fields: dict[str, Any], **how: Any) -> metadata.Metadata:
        try:
            cimd._build_application_kwargs(fields)
        except cimd.CIMDError as error:
            raise metadata.UnusableMetadataError from error
        return own(fields, **how)

    patch.setattr(metadata, "read", read)


def stock_refresh(patch: Patch) -> None:
    patch.setattr(Validator, "validate_refresh_token", OAuth2Validator.validate_refresh_token)


def no_step_up(patch: Patch) -> None:
    patch.setattr(stepup, "is_pending", lambda **_: False)


def no_deadline(patch: Patch) -> None:
    patch.setattr(fetcher, "_hang_up", lambda _: None)


def errors_without_issuer(patch: Patch) -> None:
    patch.delattr(consent.Authorize, "redirect")


def whoever_is_inactive(patch: Patch) -> None:
    patch.setattr(bearer, "_OF_A_PERSON", Q(is_service=False))
    patch.setattr(bearer, "_compiled", bearer._compiled.__wrapped__)  # which is kept otherwise


def replays_revoke_nothing(patch: Patch) -> None:
    patch.setattr(validator, "_verifies", lambda *_: False)


def stock_page(patch: Patch) -> None:
    folder = Path(oauth2_provider.__file__).parent / "templates"
    libraries = {"static": "django.templatetags.static", "i18n": "django.templatetags.i18n"}
    template = Engine(dirs=[str(folder)], libraries=libraries).get_template("oauth2_provider/authorize.html")

    def render(request: HttpRequest, name: str, context: Given) -> HttpResponse:
        lines = [line.words for line in context["scopes"]]
        shown = {"application": {"name": "Test host"}, "scopes_descriptions": lines}
        return HttpResponse(template.render(Context(shown)))

    patch.setattr(consent, "render", render)


def schemes_alone(patch: Patch) -> None:
    allowed = tuple(f"{scheme}://" for scheme in oauth2_settings.ALLOWED_REDIRECT_URI_SCHEMES)
    patch.setattr(metadata, "is_acceptable", lambda uri: uri.startswith(allowed))


def issuer_by_host_header(patch: Patch) -> None:
    patch.setattr(oauth2_settings, "OIDC_ISS_ENDPOINT", "")
    patch.setattr(views.Metadata, "get", lambda _, request: OAuthServerMetadataView.as_view()(request))


def all_scopes_by_default(patch: Patch) -> None:
    patch.setattr(oauth2_settings, "_DEFAULT_SCOPES", list(OPEN_TO_ALL), raising=False)


def device_flow(patch: Patch) -> None:
    patch.setattr(views, "SERVED", (*views.SERVED, DEVICE_CODE))


def no_limits(patch: Patch) -> None:
    patch.setattr(throttle, "count", lambda *_, **__: 0)


def narrowing_sticks(patch: Patch) -> None:
    patch.setattr(Validator, "get_original_scopes", OAuth2Validator.get_original_scopes)


def codes_in_clear(patch: Patch) -> None:
    patch.setattr(validator, "digest", str)


def sync(patch: Patch) -> None:
    async def rows(_: Reader, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with psycopg.connect(conninfo(), options="-c statement_timeout=500ms") as database:
            return database.execute(sql.encode("ascii"), values).fetchall()

    patch.setattr(Reader, "rows", rows)


GAPS = {
    1: Gap(
        what="anybody registers a client that gets tokens without a person",
        tests=(
            "oauth/test_registration.py::test_a_registration_that_we_cannot_serve_is_refused",
            "oauth/test_registration.py::test_a_registration_mints_nothing_that_opens_a_door",
            "oauth/test_token.py::test_the_database_refuses_a_token_without_a_person_or_without_one_audience",
            "oauth/test_services.py::test_the_database_keeps_no_service_that_registered_itself",
            "oauth/test_services.py::test_a_program_that_people_sign_in_to_is_no_service",
            "oauth/test_services.py::test_a_services_token_opens_nothing_of_mcp",
        ),
        stock=any_grant_registers,
        given=lambda _: {"wish": {"grant_types": ["client_credentials"]}},
    ),
    2: Gap(
        what="a client chooses its audience, any or none",
        tests=(
            "oauth/test_consent.py::test_a_wrong_request_goes_back_with_its_error_state_and_issuer",
            "oauth/test_token.py::test_the_token_is_for_our_resource_even_if_the_host_asks_for_none",
            "oauth/test_token.py::test_a_foreign_resource_at_the_token_endpoint_leaves_the_code_usable",
            "oauth/test_token.py::test_a_token_for_another_audience_or_past_its_time_finds_nobody",
            "oauth/test_refresh.py::test_a_refresh_for_a_foreign_resource_is_refused_and_spends_nothing",
            "oauth/test_services.py::test_a_service_gets_no_token_for_another_audience",
        ),
        stock=any_address_is_a_resource,
        given=lambda _: {"change": {"resource": "https://evil.example/mcp"}, "error": "invalid_target"},
    ),
    3: Gap(
        what="a parameter in the URL skips the consent",
        tests=("oauth/test_consent.py::test_nothing_in_the_url_skips_the_page",),
        stock=stock_consent,
        given=lambda _: {"extra": {"approval_prompt": "auto"}},
    ),
    4: Gap(
        what="the documents of real hosts are refused",
        tests=(
            "oauth/test_fetcher.py::test_the_documents_of_real_hosts_are_accepted",
            "oauth/test_fetcher.py::test_what_a_host_offers_beside_what_we_serve_is_dropped",
            "oauth/test_registration.py::test_real_hosts_sign_in_by_their_documents",
            "oauth/test_registration.py::test_what_a_host_wishes_for_beside_is_dropped_not_fatal",
        ),
        stock=strict_documents,
        given=lambda request: {
            "real_host": (request.getfixturevalue("publish")("/vscode.json", **VS_CODE), VS_CODE)
        },
    ),
    5: Gap(
        what="parallel refreshes fail, or end the session",
        tests=(
            "oauth/test_refresh.py::test_a_refresh_sent_again_within_the_grace_gets_the_same_answer",
            "oauth/test_refresh.py::test_parallel_refreshes_all_get_the_same_one_pair",
            "oauth/test_refresh.py::test_a_refresh_sent_again_after_the_grace_ends_the_session",
            "oauth/test_refresh.py::test_a_token_two_generations_old_ends_the_session_even_within_the_grace",
        ),
        stock=stock_refresh,
    ),
    6: Gap(
        what="a host that refreshes on a 403 never gets to more scope",
        tests=(
            "oauth/test_refresh.py::test_a_challenged_grant_is_sent_to_the_browser_and_keeps_its_tokens",
            "oauth/test_stepup.py::test_the_grant_that_was_challenged_ends_once_the_wider_one_is_there",
        ),
        stock=no_step_up,
    ),
    7: Gap(
        what="a document that drips holds a thread for as long as it likes",
        tests=(
            "oauth/test_fetcher.py::test_a_server_that_drips_is_cut_off_at_the_deadline",
            "oauth/test_fetcher.py::test_a_name_server_that_is_silent_is_cut_off_at_the_deadline",
        ),
        stock=no_deadline,
        given=lambda _: {"where": "body"},
    ),
    8: Gap(
        what="errors go back without saying who answers",
        tests=(
            "oauth/test_consent.py::test_deny_goes_back_with_an_error_and_issuer",
            "oauth/test_consent.py::test_a_wrong_request_goes_back_with_its_error_state_and_issuer",
        ),
        stock=errors_without_issuer,
    ),
    9: Gap(
        what="the tokens of who was deactivated go on",
        tests=("oauth/test_token.py::test_a_deactivated_person_is_out_at_once",),
        stock=whoever_is_inactive,
    ),
    10: Gap(
        what="a code that is redeemed twice leaves tokens alive",
        tests=(
            "oauth/test_token.py::test_a_replay_by_the_holder_revokes_what_the_code_led_to",
            "oauth/test_token.py::test_a_code_is_redeemed_once_however_many_try_at_once",
            "oauth/test_token.py::test_a_race_of_those_without_the_verifier_leaves_the_winner_alone",
        ),
        stock=replays_revoke_nothing,
    ),
    11: Gap(
        what="the consent page does not say who asks and where the answer goes",
        tests=("oauth/test_consent.py::test_the_page_names_host_account_redirect_and_scopes_in_words",),
        stock=stock_page,
    ),
    12: Gap(
        what="plain http to any host is a redirect URI",
        tests=(
            "oauth/test_registration.py::test_a_registration_that_we_cannot_serve_is_refused",
            "oauth/test_registration.py::test_an_operator_cannot_register_an_unsafe_redirect_either",
        ),
        stock=schemes_alone,
        given=lambda _: {"wish": {"redirect_uris": ["http://evil.example/cb"]}},
    ),
    13: Gap(
        what="issuer and endpoints follow the Host header",
        tests=("oauth/test_metadata.py::test_the_host_header_changes_nothing",),
        stock=issuer_by_host_header,
    ),
    14: Gap(
        what="no scope asked for means all of them",
        tests=(
            "oauth/test_consent.py::test_no_scope_asked_for_means_the_least",
            "oauth/test_services.py::test_no_scope_asked_for_means_the_least_for_a_service_too",
        ),
        stock=all_scopes_by_default,
    ),
    15: Gap(
        what="the device flow is served, and fails",
        tests=(
            "oauth/test_token.py::test_no_other_grant_leads_to_tokens",
            "oauth/test_metadata.py::test_no_other_endpoint_of_the_toolkit_is_mounted",
        ),
        stock=device_flow,
        given=lambda _: {"grant": {"grant_type": DEVICE_CODE, "device_code": "x"}},
    ),
    16: Gap(
        what="nothing is limited, and rows that strangers make stay",
        tests=(
            "oauth/test_registration.py::test_registrations_of_one_address_are_limited",
            "oauth/test_registration.py::test_refused_token_requests_of_one_address_are_limited",
            "oauth/test_registration.py::test_the_fetches_of_one_person_are_limited",
            "oauth/test_registration.py::test_clients_that_were_never_used_are_swept",
        ),
        stock=no_limits,
    ),
    17: Gap(
        what="a refresh for less scope shrinks the grant for good",
        tests=("oauth/test_refresh.py::test_a_refresh_for_less_scope_does_not_shrink_the_grant",),
        stock=narrowing_sticks,
    ),
    18: Gap(
        what="codes are stored in clear",
        tests=("oauth/test_token.py::test_nothing_that_opens_a_door_is_stored_in_clear",),
        stock=codes_in_clear,
    ),
    19: Gap(
        what="a look-up blocks the event loop",
        tests=("oauth/test_gaps.py::test_a_look_up_of_a_token_leaves_the_event_loop_free",),
        stock=sync,
    ),
}


def test_no_row_is_missing() -> None:
    assert list(GAPS) == list(range(1, 20))


@pytest.mark.parametrize("number", GAPS)
def test_a_gap_is_held_shut_by_tests(number: int) -> None:
    for named in GAPS[number].tests:
        file, _, name = named.partition("::")
        assert name in names_in(file)


@pytest.mark.django_db
@pytest.mark.parametrize("number", GAPS)
def test_its_test_fails_on_stock_behaviour(
    number: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    gap = GAPS[number]
    file, _, name = gap.tests[0].partition("::")
    test = getattr(importlib.import_module(f"tests.{file.removesuffix('.py').replace('/', '.')}"), name)
    given = gap.given(request)
    fixtures = {
        wanted: request.getfixturevalue(wanted)
        for wanted in inspect.signature(test).parameters
        if wanted not in given
    }
    gap.stock(monkeypatch)

    with pytest.raises((AssertionError, LookupError, fetcher.UnverifiedClientError)):
        test(**fixtures, **given)


@pytest.mark.django_db
def test_a_look_up_of_a_token_leaves_the_event_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look-up waits in the database for a lock that is given free once the loop turns meanwhile."""
    waits = "SELECT 1 FROM pg_advisory_lock_shared(%s) OFFSET 1"
    monkeypatch.setattr(bearer, "statement", lambda **_: (waits, [19]))

    async def look_up() -> bool:
        with psycopg.connect(conninfo(), autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(19)")
            async with threads.running(), lookups.running():
                looked = asyncio.create_task(bridge.Verifier().verify_token("x"))
                await asyncio.sleep(0.05)
                other.execute("SELECT pg_advisory_unlock(19)")
                try:
                    return await looked is None
                except psycopg.errors.QueryCanceled:
                    return False

    assert asyncio.run(look_up())

"""Connected programs: listed for whom they act for, and gone at once when disconnected."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client as Browser
from django.utils import timezone

from confirmhub.confirmations import ledger
from confirmhub.confirmations.dsn import conninfo
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.oauth import bearer, connections
from confirmhub.oauth.models import AccessToken, Client, Code, RefreshToken
from confirmhub.oauth.tokens import digest
from tests.factories import TRANSFER, decide, make_pending
from tests.oauth import lookup

PAGE = "/account/hosts"
ALL = "/account/hosts/disconnect-all"


def test_the_page_lists_what_is_connected_and_what_it_may_do(host: Any) -> None:
    assert "No program is connected" in host.browser.get(PAGE).content.decode()
    host.sign_in(scope="confirm:read")
    host.sign_in(scope="confirm:request")

    page = host.browser.get(PAGE).content.decode()

    assert "127.0.0.1:33418" in page
    assert "Test host" in page
    assert "Ask you to confirm an action" in page
    assert page.count("Disconnect</button>") == 1


def test_a_disconnected_program_is_out_at_once_and_others_stay(new_host: Any) -> None:
    gone, kept = new_host(), new_host()
    lost = [gone.sign_in(), gone.sign_in()]
    code = gone.code()
    tokens = kept.sign_in()
    key = Client.objects.get(client_id=gone.client_id).pk

    answer = gone.browser.post(PAGE, {"key": key})

    assert answer.status_code == 302
    for old in lost:
        assert lookup.find(token=old["access_token"]) is None
        assert gone.refresh(old["refresh_token"]).json()["error"] == "invalid_grant"
    assert gone.redeem(code).json()["error"] == "invalid_grant"
    assert lookup.find(token=tokens["access_token"]) is not None
    assert [line.key for line in connections.list_connections(user=kept.user)] != [key]


def test_nobody_disconnects_or_sees_what_is_another_persons(host: Any) -> None:
    tokens = host.sign_in()
    eve = User.objects.create_user("eve", password="correct horse battery")
    browser = Browser()
    browser.force_login(eve, backend="django.contrib.auth.backends.ModelBackend")

    browser.post(PAGE, {"key": Client.objects.get().pk})

    assert "127.0.0.1" not in browser.get(PAGE).content.decode()
    assert lookup.find(token=tokens["access_token"]) is not None


@pytest.mark.parametrize("key", ["", "x", "-1", "9" * 30, "१", "\0"])
def test_a_key_that_is_none_is_refused(host: Any, key: str) -> None:
    assert host.browser.post(PAGE, {"key": key}).status_code == 400


@pytest.mark.parametrize("path", [PAGE, ALL])
def test_the_pages_are_for_people_who_signed_in(db: None, path: str) -> None:
    assert Browser().get(path).status_code == 302
    assert Browser().post(path, {"key": "1"}).status_code == 302


@pytest.fixture
def connected(host: Any, settings: Any) -> list[Client]:
    """As many programs as fill two pages, each used a minute later than the one before."""
    now, made = timezone.now(), []
    for number in range(25):
        client = Client.objects.create(
            client_id=f"client-{number}",
            client_type=Client.CLIENT_PUBLIC,
            authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
            redirect_uris=f"https://host-{number}.example/cb",
        )
        common = {"user": host.user, "application": client, "resource": [settings.MCP_RESOURCE]}
        access = AccessToken.objects.create(
            token_checksum=str(number), scope="confirm:read", expires=now + timedelta(hours=1), **common
        )
        grant = RefreshToken.objects.create(
            token_checksum=str(number), access_token=access, grant_scope="confirm:read", **common
        )
        RefreshToken.objects.filter(pk=grant.pk).update(created=now - timedelta(minutes=60 - number))
        made.append(client)
    return made


def test_many_programs_stand_on_pages_the_one_used_last_first(host: Any, connected: list[Client]) -> None:
    first, second = (host.browser.get(PAGE, {"page": page}).content.decode() for page in ("1", "2"))

    assert "25 connected programs" in first
    assert first.count("Disconnect</button>") == 20
    assert second.count("Disconnect</button>") == 5
    assert first.index("host-24.example") < first.index("host-5.example")
    assert "host-4.example" in second
    assert 'href="?page=2"' in first
    assert 'href="?page=1"' in second


@pytest.mark.parametrize("page", ["0", "99", "9" * 18])
def test_a_page_that_is_not_there_is_the_nearest(host: Any, connected: list[Client], page: str) -> None:
    assert host.browser.get(PAGE, {"page": page}).status_code == 200


@pytest.mark.parametrize("page", ["", "x", "-1", "9" * 30, "१"])
def test_a_page_that_is_no_number_is_refused(host: Any, page: str) -> None:
    assert host.browser.get(PAGE, {"page": page}).status_code == 400


def test_to_disconnect_all_is_asked_first(host: Any, connected: list[Client]) -> None:
    page = host.browser.get(ALL).content.decode()

    assert f'href="{ALL}"' in host.browser.get(PAGE).content.decode()
    assert "Disconnect all 25 programs?" in page
    assert RefreshToken.objects.filter(revoked__isnull=True).count() == 25


def test_all_are_disconnected_at_once_and_those_of_others_stay(new_host: Any) -> None:
    mine = [new_host(), new_host()]
    lost = [(host, host.sign_in()) for host in mine]
    code = mine[0].code()
    eve = User.objects.create_user("eve", password="correct horse battery")
    hers = new_host()
    hers.browser.force_login(eve, backend="django.contrib.auth.backends.ModelBackend")
    kept = hers.sign_in()

    assert mine[0].browser.post(ALL).status_code == 302

    for host, old in lost:
        assert lookup.find(token=old["access_token"]) is None
        assert host.refresh(old["refresh_token"]).json()["error"] == "invalid_grant"
    assert mine[0].redeem(code).json()["error"] == "invalid_grant"
    assert "No program is connected" in mine[0].browser.get(PAGE).content.decode()
    assert "No program is connected" in mine[0].browser.get(ALL).content.decode()
    assert lookup.find(token=kept["access_token"]) is not None


@pytest.mark.django_db(transaction=True)
def test_what_all_programs_asked_is_taken_back_with_them(new_host: Any) -> None:
    one, two = new_host(), new_host()
    mallory = User.objects.create_user("mallory")
    for host in (one, two):
        host.sign_in()
    asked = [*asked_by(one, one.user), *asked_by(two, two.user)]
    of_mallory = asked_by(one, mallory)

    one.browser.post(ALL)

    reason = "The program was disconnected."
    assert states(*asked) == 2 * [("cancelled", reason), ("revoked", reason), ("redeemed", "")]
    assert states(*of_mallory) == [("pending", ""), ("approved", ""), ("redeemed", "")]


def test_to_disconnect_all_needs_the_page_of_this_browser(host: Any) -> None:
    token = host.sign_in()["access_token"]
    strict = Browser(enforce_csrf_checks=True)
    strict.force_login(host.user, backend="django.contrib.auth.backends.ModelBackend")

    assert strict.post(ALL).status_code == 403
    assert lookup.find(token=token) is not None


def test_the_last_use_is_the_last_call_not_the_last_sign_in(host: Any) -> None:
    token = host.sign_in()["access_token"]
    RefreshToken.objects.update(created=timezone.now() - timedelta(hours=2))
    (before,) = connections.list_connections(user=host.user)

    lookup.find(token=token)

    (after,) = connections.list_connections(user=host.user)
    assert timezone.now() - before.last_used_at > timedelta(hours=1)
    assert timezone.now() - after.last_used_at < timedelta(minutes=1)


def test_use_is_noted_now_and_then_and_not_at_each_call(host: Any, django_assert_num_queries: Any) -> None:
    token = host.sign_in()["access_token"]
    lookup.find(token=token)
    noted = AccessToken.objects.get().used_at

    with django_assert_num_queries(1):
        bearer.find_for_api(token=token)
    assert AccessToken.objects.get().used_at == noted

    AccessToken.objects.update(used_at=noted - bearer.NOTED_EVERY)
    lookup.find(token=token)
    assert AccessToken.objects.get().used_at >= noted


def test_a_token_that_somebody_holds_is_noted_at_its_next_use_and_nobody_waits(
    transactional_db: None, host: Any
) -> None:
    tokens = [host.sign_in()["access_token"] for _ in range(2)]
    held, free = AccessToken.objects.order_by("pk")
    ids = [held.pk, free.pk]

    with psycopg.connect(conninfo()) as other:
        other.execute("SELECT FROM oauth_accesstoken WHERE id = %s FOR UPDATE", [held.pk])
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '50ms'")  # at most that, before it fails
        bearer.note_use(ids=ids)
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
        noted = AccessToken.objects.order_by("pk").values_list("used_at", flat=True)
        assert [at is not None for at in noted] == [False, True]

    for token in tokens:
        lookup.find(token=token)
    assert not AccessToken.objects.filter(used_at=None).exists()


def test_what_is_refused_is_no_use(host: Any) -> None:
    token = host.sign_in()["access_token"]
    Client.objects.update(blocked=True)

    lookup.find(token=token)

    assert AccessToken.objects.get().used_at is None


def test_a_program_that_can_get_no_token_any_more_is_not_listed(host: Any) -> None:
    host.sign_in()
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=30, seconds=1))

    assert connections.list_connections(user=host.user) == []


def kinds(confirmation: Confirmation) -> list[str]:
    return list(confirmation.events.values_list("kind", flat=True))


def asked_by(host: Any, user: User) -> tuple[Confirmation, Confirmation, Confirmation]:
    """A question, an approval that was not used, and one that was; of this program for this person."""
    agent = Principal(host.client_id, str(user.pk))
    pending, approved, spent = (
        make_pending(agent, action=replace(TRANSFER, name=name)) for name in ("a", "b", "c")
    )
    decide(approved, user)
    decide(spent, user)
    ledger.redeem(
        confirmation_id=spent.id,
        requester=agent,
        action=replace(TRANSFER, name="c"),
        redemption_key="1",
    )
    return pending, approved, spent


def states(*confirmations: Confirmation) -> list[tuple[str, str]]:
    for confirmation in confirmations:
        confirmation.refresh_from_db()
    return [(confirmation.status, confirmation.settled_reason) for confirmation in confirmations]


@pytest.mark.django_db(transaction=True)
def test_what_a_disconnected_program_asked_is_taken_back(new_host: Any) -> None:
    gone, kept = new_host(), new_host()
    gone.sign_in()
    mallory = User.objects.create_user("mallory")
    mine, others = asked_by(gone, gone.user), asked_by(gone, mallory)
    of_another_program = asked_by(kept, kept.user)

    gone.browser.post(PAGE, {"key": Client.objects.get(client_id=gone.client_id).pk})

    reason = "The program was disconnected."
    assert states(*mine) == [("cancelled", reason), ("revoked", reason), ("redeemed", "")]
    assert kinds(mine[0])[-1] == "cancelled"
    assert reason in mine[0].events.get(kind="cancelled").detail
    untouched = [("pending", ""), ("approved", ""), ("redeemed", "")]
    assert states(*others) == states(*of_another_program) == untouched


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["action", "form", "delete", "delete-several"])
def test_what_a_program_asked_is_taken_back_when_an_operator_shuts_it_out(
    host: Any, operator: Browser, way: str
) -> None:
    client = Client.objects.get()
    asked = asked_by(host, host.user)
    change, every = f"/admin/oauth/client/{client.pk}/", "/admin/oauth/client/"
    several = {"_selected_action": [client.pk], "post": "yes"}
    fields = {
        "client_id": client.client_id,
        "name": client.name,
        "redirect_uris": client.redirect_uris,
        "client_type": client.client_type,
        "authorization_grant_type": client.authorization_grant_type,
        "blocked": "on",
    }

    answer = {
        "action": lambda: operator.post(every, several | {"action": "block"}),
        "form": lambda: operator.post(f"{change}change/", fields),
        "delete": lambda: operator.post(f"{change}delete/", {"post": "yes"}),
        "delete-several": lambda: operator.post(every, several | {"action": "delete_selected"}),
    }[way]()

    assert answer.status_code == 302
    reason = f"The program was {'removed' if 'delete' in way else 'blocked'} by an operator."
    assert states(*asked) == [("cancelled", reason), ("revoked", reason), ("redeemed", "")]


@pytest.fixture
def operator(host: Any) -> Browser:
    User.objects.create_superuser("root", password="correct horse battery")
    browser = Browser()
    browser.force_login(
        User.objects.get(username="root"), backend="django.contrib.auth.backends.ModelBackend"
    )
    return browser


def test_an_operator_looks_at_tokens_and_writes_none(host: Any, operator: Browser) -> None:
    tokens, code = host.sign_in(), host.code()
    hidden = [tokens["access_token"], tokens["refresh_token"], code]
    hidden += [digest(value) for value in hidden]

    for model in (Code, AccessToken, RefreshToken):
        base = f"/admin/oauth/{model._meta.model_name}/"
        change = f"{base}{model.objects.latest('pk').pk}/change/"
        shown = operator.get(base).content.decode() + operator.get(change).content.decode()
        assert "127.0.0.1:33418" in shown
        assert not any(value in shown for value in hidden)
        assert operator.get(f"{base}add/").status_code == 403
        assert operator.post(change, {"scope": "confirm:admin"}).status_code == 403


def test_an_operator_blocks_a_host(host: Any, operator: Browser) -> None:
    token = host.sign_in()["access_token"]

    operator.post("/admin/oauth/client/", {"action": "block", "_selected_action": [Client.objects.get().pk]})

    assert lookup.find(token=token) is None


def test_a_name_in_the_operators_list_shows_what_is_hidden_in_it(host: Any, operator: Browser) -> None:
    host.register(client_name="good\u202eevil")

    page = operator.get("/admin/oauth/client/").content.decode()

    assert "\u202e" not in page
    assert "U+202E" in page


def test_an_operator_makes_a_host_with_the_grant_that_is_served(host: Any, operator: Browser) -> None:
    form = {"client_id": "theirs", "redirect_uris": "https://host.example/cb", "client_type": "public"}

    operator.post("/admin/oauth/client/add/", form | {"authorization_grant_type": "client-credentials"})

    made = Client.objects.get(client_id="theirs")
    assert (made.authorization_grant_type, made.client_secret) == ("authorization-code", "")

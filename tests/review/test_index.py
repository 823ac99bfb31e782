"""The first page of the review: in the order of an operator's work, and nothing that they may not see."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from confirmhub.oauth.models import Client as Program
from tests.factories import make_user
from tests.review.people import signed_in

INDEX = "/admin/"
QUEUE = "/admin/confirmations/confirmation/"
STOPS = "/admin/confirmations/halt/"


PAGES_OF_A_USER = ("change", "delete", "history", "password")


def crumbs(html: str) -> list[str]:
    """The pages above one, and the page."""
    (found,) = re.findall(r'<ol class="breadcrumbs">(.*?)</ol>', html, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", each).strip() for each in re.findall(r"<li.*?</li>", found, re.DOTALL)]


def links(client: Client) -> list[str]:
    """Where its entries lead, in their order."""
    html = client.get(INDEX).content.decode()
    return re.findall(r'<th scope="row" id="[^"]*"><a href="([^"]*)"', html)


def test_the_queue_comes_first_then_stops_and_rules_and_what_is_seldom_looked_at_last(root: Client) -> None:
    found = links(root)

    assert found[:4] == [QUEUE, STOPS, "/admin/confirmations/rule/", "/admin/dashboard"]
    assert found.index("/admin/oauth/service/") < found.index("/admin/auth/user/")
    assert found[-1] == "/admin/oauth/code/"


def test_every_page_that_there_is_stands_there_once_with_what_it_is_for(root: Client) -> None:
    sections = root.get(INDEX).context["sections"]

    entries = [entry for _, entries in sections for entry in entries]
    unused = {"idtoken", "devicegrant"}
    models = {each._meta.model_name for each in admin.site._registry} - unused
    assert {entry.link.split("/")[-2] for entry in entries if entry.name != "Dashboard"} == models
    assert len({entry.link for entry in entries}) == len(entries) == len(models) + 1
    assert all(entry.about for entry in entries)


@pytest.mark.parametrize(
    ("who", "first", "adds"),
    [("onlooker", [QUEUE, STOPS, "/admin/dashboard"], []), ("operator", [QUEUE, STOPS], [STOPS])],
)
def test_nobody_finds_what_they_may_not_open_or_add(
    request: pytest.FixtureRequest, who: str, first: list[str], adds: list[str]
) -> None:
    client: Client = request.getfixturevalue(who)

    found = links(client)

    assert found[: len(first)] == first
    assert all(client.get(link).status_code == 200 for link in found)
    html = client.get(INDEX).content.decode()
    assert re.findall(r'<a href="([^"]*)add/" class="addlink"', html) == adds


def test_who_may_see_nothing_is_told_what_to_do(db: None) -> None:
    clerk = signed_in(make_user("clerk", is_staff=True))

    assert "An administrator can put it into a group." in clerk.get(INDEX).content.decode()


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("auth/user", "Users"),
        ("auth/group", "Groups"),
        ("oauth/client", "Programs"),
        ("oauth/service", "Services"),
        ("confirmations/rule", "Rules"),
        ("confirmations/halt", "Stops"),
        ("admin/logentry", "Edits"),
    ],
)
def test_a_list_is_called_what_the_first_page_calls_it(root: Client, path: str, title: str) -> None:
    html = root.get(f"/admin/{path}/").content.decode()

    assert f"<title>{title} · confirmhub</title>" in html
    assert re.findall(r"<h1>(.*?)</h1>", html) == [title]
    assert crumbs(html) == ["Home", title]
    assert f'<a href="/admin/{path}/">{title}</a>' in root.get(INDEX).content.decode()


def test_the_way_back_from_a_row_leads_to_its_list_by_that_name(root: Client) -> None:
    user = f"/admin/auth/user/{User.objects.get(username='root').pk}"

    for path in ("/admin/auth/user/add/", *(f"{user}/{page}/" for page in PAGES_OF_A_USER)):
        html = root.get(path).content.decode()
        assert crumbs(html)[:2] == ["Home", "Users"]
        assert len(crumbs(html)) == 3


def test_a_program_is_told_of_in_plain_words(root: Client) -> None:
    program = Program.objects.create(
        client_id="https://a.example/c.json",
        redirect_uris="https://a.example/back",
        client_type=Program.CLIENT_PUBLIC,
        authorization_grant_type=Program.GRANT_AUTHORIZATION_CODE,
        registration_source=Program.RegistrationSource.CIMD,
        cimd_expires_at=timezone.now(),
    )

    listed = root.get("/admin/oauth/client/").content.decode()
    row = root.get(f"/admin/oauth/client/{program.pk}/change/").content.decode()

    assert '<td class="field-state">no</td>' in listed
    assert "by its own document on the web" in listed
    for html in (listed, row):
        assert f"{program.created:%Y-%m-%d %H:%M:%S} UTC" in html
        assert not re.search(r"CIMD|DCR|RFC|a\.m\.|p\.m\.", html)
    assert f"after {program.cimd_expires_at:%Y-%m-%d %H:%M:%S} UTC" in row
    assert root.get("/admin/oauth/client/?registration_source=dcr").context["cl"].result_count == 0

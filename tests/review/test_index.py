"""The first page of the review: in the order of an operator's work, and nothing that they may not see."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.test import Client

from tests.factories import make_user
from tests.review.people import signed_in

INDEX = "/admin/"
QUEUE = "/admin/confirmations/confirmation/"
STOPS = "/admin/confirmations/halt/"


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

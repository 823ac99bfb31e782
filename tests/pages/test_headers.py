"""The headers of every page: ours, those of OAuth, Django's admin, and every answer that is an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from confirmhub.confirmations import ledger, queries
from confirmhub.confirmations.actions import Action
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Mode
from tests.confirmations.test_rules import make_rule
from tests.factories import AUDIENCE, PASSWORD, decide, make_pending, make_user
from tests.oauth.conftest import Host

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
# Those that are a page by themselves: not a part of one, a base or the mail.
PAGES = {
    str(path.relative_to(TEMPLATES))
    for path in TEMPLATES.rglob("*.html")
    if "{% extends" in path.read_text("utf-8") and path.name != "base_site.html"
}

POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
}
HEADERS = {
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
}

type Answers = dict[tuple[str, int], HttpResponse]


@pytest.mark.django_db(transaction=True)
def test_every_page_carries_the_headers(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {**pages_of_a_person(settings), **pages_of_an_operator(), **failures(monkeypatch)}

    drawn: set[str] = set()
    for (name, status), answer in answers.items():
        assert answer.status_code == status, name
        assert {header: answer.headers.get(header) for header in HEADERS} == HEADERS, name
        # The one exception: browsers hold the redirect back to the program to the policy, too.
        back = (
            {f"form-action 'self' {Host.redirect_uri.removesuffix('/callback')}"}
            if name == "consent"
            else set()
        )
        rules = {rule.strip() for rule in answer.headers["Content-Security-Policy"].split(";")}
        assert rules == (POLICY - {"form-action 'self'"} | back if back else POLICY), name
        assert "</html>" in answer.content.decode(), name
        drawn |= {template.name for template in answer.templates if template.name}
    assert PAGES - drawn == set()


def pages_of_a_person(settings: Settings) -> Answers:
    """What somebody sees who decides, and lets programs act for them."""
    person, nobody = make_user("ada"), Client(headers={"host": "localhost"})
    browser = signed_in(person)
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]
    host = Host(user=person, resource=settings.MCP_RESOURCE, browser=browser)
    host.register()
    agent = Principal(host.client_id, str(person.pk))
    pending, settled = (
        make_pending(agent),
        decide(make_pending(agent, action=Action(AUDIENCE, "run", {})), person),
    )
    again = {"verdict": "deny", "digest_shown": bytes(settled.view_digest).hex()}
    sign_in = {"username": "ada", "password": PASSWORD, "next": host.url()}
    new = {"old_password": PASSWORD, "new_password1": "correct horse 2", "new_password2": "correct horse 2"}
    wrong = {"username": "nobody", "password": "wrong"}
    answers: Answers = {
        ("inbox", 200): browser.get("/"),
        ("question", 200): browser.get(f"/confirm/{pending.id}"),
        ("receipt", 200): browser.get(f"/confirm/{settled.id}"),
        ("refused", 409): browser.post(f"/confirm/{settled.id}", again),
        ("history", 200): browser.get("/history"),
        ("password", 200): browser.get("/password"),
        ("notices", 200): browser.get("/account/notices"),
        ("notices refused", 400): browser.post("/account/notices/add", {"channel": "slack"}),
        ("hosts", 200): browser.get("/account/hosts"),
        ("disconnect all", 200): browser.get("/account/hosts/disconnect-all"),
        ("consent", 200): browser.get(host.url()),
        ("no consent", 400): browser.get(host.url(client_id="nobody")),
        ("documentation", 200): browser.get("/api/v1/docs"),
        ("sign-in", 200): nobody.get("/sign-in"),
        ("sign-in refused", 200): nobody.post("/sign-in", wrong),
        ("signed in on the way", 200): nobody.post("/sign-in", sign_in),
        ("new password", 200): browser.post("/password", new, follow=True),
        ("damaged", 400): browser.get("/confirm/damaged"),
        ("nothing there", 404): browser.get("/nowhere"),
        ("not for them", 403): browser.get("/admin/login/"),
        ("method", 405): browser.get("/try"),
    }
    for _ in range(settings.AXES_FAILURE_LIMIT):
        locked = nobody.post("/sign-in", wrong)
    return {**answers, ("locked out", 429): locked}


def pages_of_an_operator() -> Answers:
    """Django's admin, signed in."""
    root = make_user("root", is_staff=True, is_superuser=True)
    browser = signed_in(root)
    agent = Principal("https://agent.example/client.json", str(root.pk))
    row, stop = make_pending(agent), ledger.halt(operator=root, reason="Because")
    queue = "/admin/confirmations/confirmation/"
    rule = make_rule(Mode.CONFIRM)
    rules, marked = "/admin/confirmations/rule/", {"action": "delete_selected", "_selected_action": [rule.pk]}
    service = {"name": "Payments", "audience": "https://payments.example/mcp", "scopes": ["confirm:request"]}
    return {
        ("admin", 200): browser.get("/admin/"),
        ("dashboard", 200): browser.get("/admin/dashboard"),
        ("queue", 200): browser.get(queue),
        ("row", 200): browser.get(f"{queue}{row.id}/change/"),
        ("move", 200): browser.get(f"{queue}{row.id}/deny/"),
        ("stops", 200): browser.get("/admin/confirmations/halt/"),
        ("stop", 200): browser.get(f"/admin/confirmations/halt/{stop.pk}/change/"),
        ("new stop", 200): browser.get("/admin/confirmations/halt/add/"),
        ("lift", 200): browser.get(f"/admin/confirmations/halt/{stop.pk}/lift/"),
        ("rules", 200): browser.get(f"{rules}add/"),
        ("rule's edits", 200): browser.get(f"{rules}{rule.pk}/history/"),
        ("rule's end", 200): browser.get(f"{rules}{rule.pk}/delete/"),
        ("rules' end", 200): browser.post(rules, marked),
        ("people", 200): browser.get("/admin/auth/user/"),
        ("person", 200): browser.get(f"/admin/auth/user/{root.pk}/change/"),
        ("person's password", 200): browser.get(f"/admin/auth/user/{root.pk}/password/"),
        ("secret", 200): browser.post("/admin/oauth/service/add/", service),
        ("no row", 404): browser.get("/admin/nowhere/"),
    }


def failures(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What is answered where something failed, and to a form of another site."""
    browser = signed_in(make_user("eve"))
    browser.raise_request_exception = False
    strict = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    foreign = Client(headers={"host": "evil.example"})

    def failing(error: Exception) -> Callable[..., None]:
        def fail(**_: object) -> None:
            raise error

        monkeypatch.setattr(queries, "list_waiting_for", fail)
        return fail

    failing(RuntimeError("secret"))
    failed = browser.get("/")
    failing(OperationalError("no Postgres"))
    return {
        ("failed", 500): failed,
        ("busy", 503): browser.get("/"),
        ("form of another site", 403): strict.post("/sign-in", {"username": "eve"}),
        ("wrong host", 400): foreign.get("/sign-in"),
    }


def signed_in(user: User) -> Client:
    client = Client(headers={"host": "localhost"})
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client

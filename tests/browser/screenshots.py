"""Takes the pictures in docs/screenshots. Not run with the tests; run it when a page changes:

./hub test tests/browser/screenshots.py
"""

from __future__ import annotations

import base64
import hashlib
import random
import secrets
from datetime import time, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings

from confirmhub.confirmations import ledger, outbox
from confirmhub.confirmations.actions import Action, Observation
from confirmhub.confirmations.errors import AlreadyRedeemed
from confirmhub.confirmations.models import Confirmation
from confirmhub.confirmations.principals import Principal
from confirmhub.confirmations.states import Result, Verdict
from confirmhub.notifications.models import QuietHours
from confirmhub.oauth.models import AccessToken, Client, RefreshToken
from tests.browser import palette
from tests.browser.conftest import OpenPage
from tests.factories import AUDIENCE, decide, make_pending, make_user, redeem

pytestmark = pytest.mark.django_db(transaction=True)

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
DESKTOP = {"viewport": {"width": 960, "height": 600}}
PHONE = {"viewport": {"width": 390, "height": 700}}
CLIENT_ID = "https://claude.ai/oauth/mcp.json"
REDIRECT = "https://claude.ai/api/mcp/auth_callback"


@pytest.fixture
def mara(db: None) -> User:
    return make_user("mara", is_staff=True, is_superuser=True)


@pytest.fixture
def claude(mara: User) -> Principal:
    """A host that proved its name, connected by mara."""
    Client.objects.create(
        client_id=CLIENT_ID,
        name="Claude",
        redirect_uris=REDIRECT,
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        registration_source=Client.RegistrationSource.CIMD,
        cimd_expires_at=timezone.now() + timedelta(days=1),
    )
    return Principal(CLIENT_ID, str(mara.pk))


def ask(agent: Principal, question: str, action: Action, **fields: Any) -> Confirmation:
    return make_pending(agent, action=action, question=question, **fields)


def deletion(path: str) -> Action:
    return Action(AUDIENCE, "delete_file", {"path": path, "recursive": False})


def spend(agent: Principal, confirmation: Confirmation, action: Action, result: Result, detail: str) -> None:
    receipt = ledger.redeem(
        confirmation_id=confirmation.id,
        requester=agent,
        action=action,
        redemption_key=secrets.token_hex(8),
    )
    ledger.report_outcome(receipt=receipt, result=result, detail=detail)


@pytest.fixture
def settled(mara: User, claude: Principal) -> Confirmation:
    """An afternoon of questions that were answered; the last of them, which was used."""
    move = Action(AUDIENCE, "move_file", {"source": "/srv/reports/2025", "target": "/srv/archive/2025"})
    decide(
        ask(claude, "Move a folder out of reports?", move), mara, Verdict.DENY, reason="Not before the audit"
    )
    last: Confirmation | None = None
    for name in ("draft-1.pdf", "draft-2.pdf"):
        action = deletion(f"/srv/reports/2026/{name}")
        seen = Observation((("Kind", "regular file"), ("Size", "184 320 bytes")), "etag-1")
        asked = ask(claude, "Delete one file from reports?", action, summary="A draft.", observation=seen)
        last = decide(asked, mara)
        spend(claude, last, action, Result.SUCCEEDED, "")
    assert last is not None
    return last


@pytest.fixture
def waiting(claude: Principal, settled: Confirmation) -> Confirmation:
    """What waits now, the most telling of it."""
    mail = Action(
        AUDIENCE, "send_mail", {"to": ["bea@example.org"], "subject": "Q3", "body": "Dear Bea,\nhere it is."}
    )
    ask(claude, "Send one mail to Bea?", mail)
    facts = (
        ("Kind", "regular file, Windows program"),
        ("Size", "2 413 568 bytes"),
        ("Changed", "2026-11-28 09:14:03 UTC"),
        ("Content", "sha256 4be1 09d7"),
    )
    return ask(
        claude,
        "Delete one file from reports?",
        deletion("/srv/reports/2026/Q3-\u202efdp.exe"),
        summary="Removing an outdated copy of the Q3 report.",
        observation=Observation(facts, "sha256:4be109d7"),
    )


def take(page: Page, name: str) -> None:
    expect(page.locator("form.still")).to_have_count(0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    png = page.screenshot(full_page=True, animations="disabled")
    with page.context.new_page() as blank:
        palette.write(blank, png, FOLDER / f"{name}.png")


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("confirm", DESKTOP),
        ("confirm-dark", DESKTOP | {"color_scheme": "dark"}),
        ("confirm-phone", PHONE),
    ],
)
def test_the_confirm_page(
    open_page: OpenPage, mara: User, waiting: Confirmation, name: str, look: dict[str, Any]
) -> None:
    take(open_page(f"/confirm/{waiting.id}", as_=mara, **look), name)


@pytest.fixture
def changed(mara: User, claude: Principal, settled: Confirmation) -> Confirmation:
    """A question that was answered with yes, and whose target is another one since."""
    action = deletion("/srv/reports/2026/Q3.pdf")

    def ask_about(size: str, changed_at: str, first: str) -> Confirmation:
        facts = (
            ("Kind", "regular file"),
            ("Size", size),
            ("Changed", changed_at),
            ("First lines", f"Report Q3 2026\n{first}"),
        )
        seen = Observation(facts, f"sha256:{size}")
        return ask(claude, "Delete one file from reports?", action, summary="A draft.", observation=seen)

    first = decide(ask_about("12 288 bytes", "2026-11-28 09:14:03 UTC", "Draft, do not use"), mara)
    ledger.revoke(confirmation_id=first.id, revoker=claude, reason="The target changed after it was shown.")
    return ask_about("2 413 568 bytes", "2026-11-30 16:58:40 UTC", "Final, signed by the board")


def test_a_question_again_after_the_target_changed(
    open_page: OpenPage, mara: User, changed: Confirmation
) -> None:
    take(open_page(f"/confirm/{changed.id}", as_=mara, **DESKTOP), "confirm-changed")


def test_a_question_while_redemptions_are_stopped(
    open_page: OpenPage, mara: User, waiting: Confirmation
) -> None:
    ledger.halt(operator=mara, reason="A stolen laptop; we look into it.", action_pattern="delete_*")
    take(open_page(f"/confirm/{waiting.id}", as_=mara, **DESKTOP), "confirm-stopped")


def test_the_inbox(open_page: OpenPage, mara: User, waiting: Confirmation) -> None:
    take(open_page("/", as_=mara, **DESKTOP), "inbox")


def test_the_history(open_page: OpenPage, mara: User, waiting: Confirmation) -> None:
    take(open_page("/history", as_=mara, **DESKTOP), "history")


def test_the_receipt(open_page: OpenPage, mara: User, settled: Confirmation) -> None:
    take(open_page(f"/confirm/{settled.id}", as_=mara, **DESKTOP), "receipt")


def test_the_sign_in(open_page: OpenPage) -> None:
    take(open_page("/sign-in?next=/history", **DESKTOP), "sign-in")


def test_the_queue(open_page: OpenPage, mara: User, waiting: Confirmation) -> None:
    take(
        open_page("/admin/confirmations/confirmation/", as_=mara, viewport={"width": 1240, "height": 600}),
        "queue",
    )


@pytest.fixture
def unreported(mara: User, claude: Principal, settled: Confirmation) -> Confirmation:
    """Spent, then tried once more; and nobody has said what came of it."""
    action = deletion("/srv/reports/2026/Q3-\u202efdp.exe")
    seen = Observation((("Kind", "regular file, Windows program"), ("Size", "2 413 568 bytes")), "etag-2")
    asked = ask(
        claude, "Delete one file from reports?", action, summary="An outdated copy.", observation=seen
    )
    approved = decide(asked, mara, reason="Nobody needs it")
    redeem(approved, claude, action=action)
    with pytest.raises(AlreadyRedeemed):
        redeem(approved, claude, action=action)
    for notice in outbox.lease_notices(limit=100, lease=timedelta(minutes=1), lane=outbox.Lane.MAIL):
        outbox.mark_sent(notice_id=notice.id)
    return approved


@pytest.mark.parametrize(("name", "scheme"), [("detail", "light"), ("detail-dark", "dark")])
def test_one_confirmation_in_the_review(
    open_page: OpenPage, mara: User, unreported: Confirmation, name: str, scheme: str
) -> None:
    look = {"viewport": {"width": 1240, "height": 600}, "color_scheme": scheme}
    take(open_page(f"/admin/confirmations/confirmation/{unreported.id}/change/", as_=mara, **look), name)


@pytest.fixture
def ways(mara: User) -> None:
    """Three ways to be told, one that fails and one that is off; and quiet hours."""
    hour = timezone.now().replace(minute=4) - timedelta(hours=1)
    mara.destinations.create(channel="email", sent_at=hour)
    mara.destinations.create(
        channel="slack",
        address="https://hooks.slack.com/services/T0000/B0000/XXXX7c1f",
        failure="The server says that the address is gone.",
    )
    mara.destinations.create(channel="ntfy", address="https://ntfy.sh/mara-9b1c", is_active=False)
    QuietHours.objects.create(user=mara, starts=time(22), ends=time(7), zone="Europe/Berlin")


@pytest.mark.parametrize(("name", "scheme"), [("notices", "light"), ("notices-dark", "dark")])
def test_the_notices_of_an_account(
    open_page: OpenPage, mara: User, ways: None, name: str, scheme: str
) -> None:
    take(open_page("/account/notices", as_=mara, **DESKTOP, color_scheme=scheme), name)


@pytest.fixture
def connected(mara: User, claude: Principal) -> None:
    """A host that proved its name, and a program on somebody's own machine."""
    editor = Client.objects.create(
        client_id="1f0c6f6a-editor",
        name="Editor",
        redirect_uris="http://127.0.0.1/callback",
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        registration_source=Client.RegistrationSource.DCR,
    )
    scopes = "confirm:read confirm:request confirm:redeem"
    for client, scope in ((Client.objects.get(client_id=CLIENT_ID), scopes), (editor, "confirm:read")):
        common = {
            "user": mara,
            "application": client,
            "token_checksum": secrets.token_hex(32),
            "resource": ["http://localhost:8000/mcp"],
        }
        access = AccessToken.objects.create(
            scope=scope, expires=timezone.now() + timedelta(hours=1), **common
        )
        RefreshToken.objects.create(access_token=access, grant_scope=scope, **common)


@pytest.mark.parametrize(("name", "scheme"), [("hosts", "light"), ("hosts-dark", "dark")])
def test_the_connected_programs(
    open_page: OpenPage, mara: User, connected: None, name: str, scheme: str
) -> None:
    take(open_page("/account/hosts", as_=mara, **DESKTOP, color_scheme=scheme), name)


@pytest.fixture
def day(claude: Principal, mara: User, waiting: Confirmation) -> None:
    """A working day of several people, one of whom says yes to everything at once."""
    chance = random.Random(7)
    ages = sorted((min(23, chance.gammavariate(4, 1.6)) for _ in range(60)), reverse=True)  # hours
    people = [(make_user("jonas"), 2), *((make_user(name), 90) for name in ("aylin", "tomasz"))]
    for number, age in enumerate(ages):
        person, patience = people[number % 3]
        action = (
            deletion(f"/srv/reports/{number}.pdf")
            if number % 4
            else Action(AUDIENCE, "deploy", {"n": number})
        )
        agent = Principal(CLIENT_ID if number % 5 else "https://ci.example/agent.json", str(person.pk))
        verdict = Verdict.DENY if person.username != "jonas" and number % 5 == 0 else Verdict.APPROVE
        asked = decide(ask(agent, "Go on?", action), person, verdict)
        if verdict is Verdict.APPROVE:
            spend(agent, asked, action, Result.SUCCEEDED, "")
        at = timezone.now() - timedelta(hours=age)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for table in ("decision", "confirmation"):
                cursor.execute(f"ALTER TABLE confirmations_{table} DISABLE TRIGGER USER")
            asked.decisions.update(decided_at=at)
            took = timedelta(seconds=chance.expovariate(1 / patience) + 0.7)
            Confirmation.objects.filter(id=asked.id).update(requested_at=at - took)
            for table in ("decision", "confirmation"):
                cursor.execute(f"ALTER TABLE confirmations_{table} ENABLE TRIGGER USER")


@pytest.mark.parametrize(("name", "scheme"), [("dashboard", "light"), ("dashboard-dark", "dark")])
def test_the_dashboard(open_page: OpenPage, mara: User, day: None, name: str, scheme: str) -> None:
    look = {"viewport": {"width": 1240, "height": 600}, "color_scheme": scheme}
    take(open_page("/admin/dashboard", as_=mara, **look), name)


def test_the_consent_page(open_page: OpenPage, mara: User, claude: Principal, settings: Settings) -> None:
    query = {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": REDIRECT,
        "scope": "confirm:read confirm:request confirm:redeem",
        "state": "s",
        "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(b"v" * 43).digest()).decode().rstrip("="),
        "code_challenge_method": "S256",
        "resource": settings.MCP_RESOURCE,
    }
    take(open_page(f"/oauth/authorize?{urlencode(query)}", as_=mara, **DESKTOP), "consent")

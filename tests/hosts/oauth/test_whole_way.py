"""Real hosts, against a running confirmhub: from the first 401 to a deletion that waits for its yes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from django.utils import timezone

from confirmhub.oauth.models import AccessToken, Client, RefreshToken
from tests.hosts import nodes
from tests.hosts.oauth.person import Person, loopback
from tests.hosts.oauth.programs import Host, Line
from tests.oauth.sites import HOSTS, Web, published
from tests.ops.service import free_port

BASE = "confirm:read confirm:redeem confirm:request"
ALL = f"{BASE} files:delete"

# Which host's published document a host of each make uses, and where on the web that has its answers sent:
# None is for a port of the person's machine.
PUBLISHED = {
    "typescript 1": ("claude-code", None),
    "typescript 1, bare": ("vscode", None),
    "typescript 2": ("claude", "https://claude.ai/api/mcp/auth_callback"),
    "python": ("chatgpt", "https://chatgpt.com/connector_platform_oauth_redirect"),
}
PATHS = {"claude-code": "/callback", "vscode": "/"}

each_make = pytest.mark.parametrize("host", PUBLISHED, indirect=True)


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """Where the hosts on the person's machine are answered."""
    with loopback() as origin:
        yield origin


@dataclass(frozen=True)
class Document:
    """What a host publishes about itself, and what it uses of it."""

    client_id: str
    redirect: str

    @property
    def place(self) -> str:
        """What the page must name it by."""
        return urlsplit(self.client_id).netloc


@pytest.fixture
def document(host: Host, web: Web, origin: str) -> Document:
    """That of a well-known host, as `host`'s."""
    name, redirect = PUBLISHED[host.make]
    client_id = published(web, f"/{name}.json", **HOSTS[name])
    return Document(client_id, redirect or origin + PATHS[name])


def query(link: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(link).query, strict_parsing=True))


def first(host: Host) -> str:
    """What a host of this make sends first."""
    return "initialize" if host.make.startswith("typescript 1") else "server/discover"


def discovery(host: Host) -> list[str]:
    return [
        f"POST /mcp {first(host)} 401",
        "GET /.well-known/oauth-protected-resource/mcp 200",
        "GET /.well-known/oauth-authorization-server 200",
    ]


def signed_in(host: Host, answer: str) -> None:
    """Bring the answer, and see the host connect with it."""
    line = host.answer(answer)
    assert line["event"] == "connected", line
    # The hosts on the first SDK remember no discovery.
    again = discovery(host)[1:] if host.make.startswith("typescript 1") else []
    done = [*again, "POST /oauth/token authorization_code 200", f"POST /mcp {first(host)} 200"]
    assert line["requests"][: len(done)] == done


def listing(line: Line, *, times: int = 1) -> None:
    """See that each call was answered."""
    assert line["event"] == "results", line
    assert [len(result["entries"]) for result in line["results"]] == [1] * times


@each_make
def test_a_host_with_a_document_signs_in_stays_signed_in_and_asks_for_more(
    server: str, person: Person, folder: Path, host: Host, document: Document
) -> None:
    # Discovery, up to the redirect.
    line = host.start(f"{server}/mcp", redirect=document.redirect, document=document.client_id)
    assert line["event"] == "authorize", line
    assert line["requests"] == discovery(host)
    asked = query(line["url"])
    assert line["url"].startswith(f"{server}/oauth/authorize?")
    challenge, state = asked.pop("code_challenge"), asked.pop("state")
    assert asked == {
        "response_type": "code",
        "client_id": document.client_id,
        "code_challenge_method": "S256",
        "redirect_uri": document.redirect,
        "scope": BASE,
        "resource": f"{server}/mcp",
    }
    assert len(challenge) == 43
    if "verifier" in line:
        assert challenge == s256(line["verifier"])

    # Consent, and the first call.
    answer = person.allow(line["url"], shown=document.place, of=3, new=0)
    assert query(f"?{answer}").keys() == {"code", "state", "iss"}
    assert query(f"?{answer}")["state"] == state
    assert query(f"?{answer}")["iss"] == server
    signed_in(host, answer)
    listing(host.call("list_files"))

    # Five calls find the token expired.
    AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1))
    host.wait_for_expiry()
    line = host.call("list_files", times=5)
    listing(line, times=5)
    refreshes = [request for request in line["requests"] if request.startswith("POST /oauth/token")]
    assert refreshes == ["POST /oauth/token refresh_token 200"] * (1 if host.make == "python" else 5)
    assert line["notes"] == []
    assert one_family_is_alive(document.client_id)

    # A tool that needs more, which the person first does not want.
    wanted = step_up(host, folder)
    denied = person.deny(wanted["url"], shown=document.place, of=4, new=1)
    assert query(f"?{denied}")["error"] == "access_denied"
    assert query(f"?{denied}")["iss"] == server
    line = host.answer(denied)
    assert line["event"] == "failed"
    assert "denied" in line["message"]
    listing(host.call("list_files"))

    # And then does.
    wanted = step_up(host, folder)
    line = host.answer(person.allow(wanted["url"], shown=document.place, of=4, new=1))
    waits_for_person(line)
    assert Client.objects.get().registration_source == Client.RegistrationSource.CIMD


@each_make
def test_a_host_that_registers_and_stores_no_refresh_token_asks_for_more(
    server: str, person: Person, folder: Path, origin: str, host: Host
) -> None:
    here = urlsplit(origin).netloc
    line = host.start(f"{server}/mcp", redirect=f"{origin}/callback", keeps_refresh_token=False)
    assert line["event"] == "authorize", line
    assert line["requests"] == [*discovery(host), "POST /oauth/register 201"]

    signed_in(host, person.allow(line["url"], shown=here, of=3, new=0))
    listing(host.call("list_files"))
    wanted = step_up(host, folder, refreshes=False)
    waits_for_person(host.answer(person.allow(wanted["url"], shown=here, of=4, new=1)))

    # Its token becomes one for somebody else, and is none for us.
    AccessToken.objects.update(resource=["https://other.example/mcp"])
    line = host.call("list_files")
    assert line["event"] == "authorize", line
    assert line["requests"][0] == "POST /mcp tools/call 401"
    assert Client.objects.get().registration_source == Client.RegistrationSource.DCR


@pytest.mark.parametrize("host", ["typescript 1", "typescript 2"], indirect=True)
def test_a_host_that_wants_a_token_for_somebody_else_gets_none(
    server: str, person: Person, origin: str, host: Host
) -> None:
    """The Python SDK cannot be told to."""
    line = host.start(f"{server}/mcp", redirect=f"{origin}/callback", resource="https://other.example/mcp")
    assert query(line["url"])["resource"] == "https://other.example/mcp"

    answer = person.is_sent_back(line["url"])

    assert query(f"?{answer}")["error"] == "invalid_target"
    assert query(f"?{answer}")["iss"] == server
    line = host.answer(answer)
    assert line["event"] == "failed"
    assert line["requests"] == []
    assert not AccessToken.objects.exists()


def test_the_official_conformance_suite_passes(server: str, person: Person, tmp_path: Path) -> None:
    port = free_port()
    redirect = f"http://127.0.0.1:{port}/callback"
    registered = httpx2.post(
        f"{server}/oauth/register", json={"client_name": "Conformance", "redirect_uris": [redirect]}
    )
    command = [*nodes.tool("conformance"), "authorization", "--url", server, "--resource", f"{server}/mcp"]
    command += ["--client-id", registered.json()["client_id"], "--port", str(port), "--output-dir", tmp_path]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as suite:
        try:
            assert suite.stdout
            said = ""
            for line in suite.stdout:
                said += line
                if link := re.search(rf"{re.escape(server)}/oauth/authorize\S+", line):
                    person.allow(link[0], shown=f"127.0.0.1:{port}", of=1, new=0)
            suite.wait(10)
        finally:
            suite.kill()

    assert suite.returncode == 0, said
    checks = [check for file in tmp_path.rglob("checks.json") for check in json.loads(file.read_text())]
    assert {check["status"] for check in checks} == {"SUCCESS"}, said
    assert len(checks) == 3


def step_up(host: Host, folder: Path, *, refreshes: bool = True) -> Line:
    """Have the host call what its token is too weak for, and see whom it asks, for what and how."""
    file = folder / "report.txt"
    file.write_text("Quarterly numbers.\n")
    line = host.call("delete_file", path=str(file))
    assert line["event"] == "authorize", line
    assert sorted(query(line["url"])["scope"].split()) == ALL.split()
    assert line["requests"][0] == "POST /mcp tools/call 403"
    refused = ["POST /oauth/token refresh_token 400 interaction_required"]
    first_sdk = host.make.startswith("typescript 1")
    sent = [request for request in line["requests"] if request.startswith("POST /oauth/token")]
    assert sent == (refused if first_sdk and refreshes else [])
    # Who closes the page must still be signed in.
    assert line["notes"] == []
    return line


def waits_for_person(line: Line) -> None:
    assert line["event"] == "results", line
    [result] = line["results"]
    assert result["status"] == "waiting_for_person"


def one_family_is_alive(client_id: str) -> bool:
    """Whether one refresh token and one access token are good, and all there ever were are one family."""
    tokens = RefreshToken.objects.filter(application__client_id=client_id)
    alive = AccessToken.objects.filter(application__client_id=client_id, expires__gt=timezone.now())
    families = tokens.values("token_family").distinct().count()
    return (tokens.filter(revoked=None).count(), alive.count(), families) == (1, 1, 1)


def s256(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()

"""Our own host refuses what a server must not be believed, at real servers; a good one it signs in to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from confirmhub.oauth import client, fetcher
from confirmhub.oauth.client import Reach, UnsafeServerError
from confirmhub.ops.demo_host import Memory
from tests.oauth.toys import Pair, as_json, query, serving

CALLBACK = "http://127.0.0.1:33418/callback"
REFUSED = r"not a public address|not https"
METADATA = "GET /.well-known/oauth-authorization-server"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with serving() as mcp, serving() as auth:
        yield Pair(mcp=mcp, auth=auth)


class Person:
    """The browser and who sits at it: where they were sent, and what comes back."""

    def __init__(self, **answer: str | None) -> None:
        self.sent_to: list[str] = []
        self.answer = answer

    async def open(self, url: str) -> None:
        self.sent_to.append(url)

    async def back(self) -> AuthorizationCodeResult:
        asked = query(self.sent_to[-1])
        given: dict[str, Any] = {"code": "c", "state": asked["state"], "iss": None, **self.answer}
        return AuthorizationCodeResult(**given)


def call(url: str, person: Person) -> httpx2.Response:
    """One call of the MCP server, signing in on the way."""

    async def run() -> httpx2.Response:
        async with client.http_client(
            url,
            client_metadata=OAuthClientMetadata(client_name="Ours", redirect_uris=[AnyUrl(CALLBACK)]),
            storage=Memory(),
            redirect_handler=person.open,
            callback_handler=person.back,
            timeout=10,
        ) as http:
            return await http.post(url, json={})

    return asyncio.run(run())


def refuses(pair: Pair, words: str, *, person: Person | None = None) -> None:
    """Nobody was sent anywhere, and nothing but documents was asked for."""
    person = person or Person()

    with pytest.raises(UnsafeServerError, match=words):
        call(pair.url, person)

    assert person.sent_to == []
    assert {page.split(" ")[0] for page in pair.auth.asked} <= {"GET"}


def test_a_good_server_is_signed_in_to(pair: Pair) -> None:
    person = Person(iss=pair.auth.origin)

    assert call(pair.url, person).json() == {"result": "done"}


def test_the_way_up_to_the_redirect_is_the_published_one(pair: Pair) -> None:
    person = Person(iss=pair.auth.origin)

    call(pair.url, person)

    assert pair.mcp.asked[:2] == ["POST /mcp", "GET /.well-known/oauth-protected-resource/mcp"]
    assert pair.auth.asked == [METADATA, "POST /register", "POST /token"]
    (url,) = person.sent_to
    asked = query(url)
    assert url.startswith(f"{pair.auth.origin}/authorize?")
    assert asked["response_type"] == "code"
    assert asked["client_id"] == "toy"
    assert len(asked["code_challenge"]) == 43
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == CALLBACK
    assert asked["scope"] == "devices:read"
    assert asked["resource"] == pair.url


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (None, "does not say that PKCE is supported"),
        (["plain"], "supports no S256"),
        ([], "supports no S256"),
        ("S256", "supports no S256"),
        ({"S256": True}, "supports no S256"),
    ],
    ids=["missing", "only plain", "none", "a string", "an object"],
)
def test_a_server_without_pkce_by_s256_is_refused(pair: Pair, methods: object, words: str) -> None:
    del pair.metadata["code_challenge_methods_supported"]
    if methods is not None:
        pair.metadata["code_challenge_methods_supported"] = methods

    refuses(pair, words)


def test_the_sdk_alone_would_send_a_person_there(pair: Pair) -> None:
    """If this fails, the SDK has learned it, and a guard of ours may go."""
    del pair.metadata["code_challenge_methods_supported"]
    person = Person(iss=pair.auth.origin)
    described = OAuthClientMetadata(client_name="Ours", redirect_uris=[AnyUrl(CALLBACK)])

    async def run() -> httpx2.Response:
        auth = OAuthClientProvider(pair.url, described, Memory(), person.open, person.back)
        async with httpx2.AsyncClient(auth=auth) as http:
            return await http.post(pair.url, json={})

    assert asyncio.run(run()).status_code == 200
    assert len(person.sent_to) == 1


@pytest.mark.parametrize(
    "issuer",
    ["https://login.honest.example", "{auth}/", "{auth}/tenant", "{AUTH}", "", None, 1, "http://[", "x"],
)
def test_metadata_of_another_issuer_is_refused(pair: Pair, issuer: object) -> None:
    named = {"auth": pair.auth.origin, "AUTH": pair.auth.origin.upper()}
    pair.metadata["issuer"] = issuer.format(**named) if isinstance(issuer, str) else issuer
    person = Person()

    with pytest.raises(OAuthFlowError, match=r"of the issuer|mismatch"):
        call(pair.url, person)

    assert person.sent_to == []
    assert "POST /register" not in pair.auth.asked


def test_a_key_twice_hides_nothing(pair: Pair) -> None:
    good = as_json(pair.metadata)[2]
    pair.auth.pages[METADATA] = lambda *_: (
        200,
        {"Content-Type": "application/json"},
        good[:-1] + b', "issuer": "https://login.honest.example"}',
    )

    refuses(pair, "No authorization server says how to sign in")


def test_without_metadata_no_endpoint_is_guessed(pair: Pair) -> None:
    del pair.auth.pages[METADATA]

    refuses(pair, "No authorization server says how to sign in")
    assert not {"POST /register", "POST /token"} & {*pair.mcp.asked, *pair.auth.asked}


def test_a_server_of_the_first_hour_is_refused(pair: Pair) -> None:
    """One that publishes no metadata of its resource, so that it would be its own authorization server."""
    del pair.mcp.pages["GET /.well-known/oauth-protected-resource/mcp"]

    refuses(pair, "No authorization server says how to sign in")
    assert "POST /register" not in pair.mcp.asked


def test_a_page_in_place_of_metadata_is_passed_over(pair: Pair) -> None:
    pair.auth.pages[METADATA] = lambda *_: (200, {"Content-Type": "text/html"}, b"<!doctype html>")
    pair.auth.pages["GET /.well-known/openid-configuration"] = lambda *_: as_json(pair.metadata)

    assert call(pair.url, Person(iss=pair.auth.origin)).status_code == 200


def test_metadata_in_the_second_place_is_held_to_the_same(pair: Pair) -> None:
    del pair.auth.pages[METADATA], pair.metadata["code_challenge_methods_supported"]
    pair.auth.pages["GET /.well-known/openid-configuration"] = lambda *_: as_json(pair.metadata)

    refuses(pair, "does not say that PKCE is supported")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"iss": "https://login.honest.example"}, "iss mismatch"),
        ({"iss": "{auth}/"}, "iss mismatch"),
        ({"iss": None}, "missing iss"),
        ({"iss": "{auth}", "state": "another"}, "State parameter mismatch"),
        ({"iss": "{auth}", "state": None}, "State parameter mismatch"),
    ],
)
def test_a_callback_from_elsewhere_is_not_believed(
    pair: Pair, answer: dict[str, str | None], words: str
) -> None:
    given = {name: value and value.format(auth=pair.auth.origin) for name, value in answer.items()}

    with pytest.raises(OAuthFlowError, match=words):
        call(pair.url, Person(**given))

    assert "POST /token" not in pair.auth.asked


@pytest.mark.parametrize("resource", ["https://mcp.honest.example/mcp", "{mcp}/other", "{auth}/mcp"])
def test_a_resource_that_is_another_gets_no_token(pair: Pair, resource: str) -> None:
    pair.resource["resource"] = resource.format(mcp=pair.mcp.origin, auth=pair.auth.origin)
    person = Person()

    with pytest.raises(OAuthFlowError, match="does not match"):
        call(pair.url, person)

    assert (person.sent_to, pair.auth.asked) == ([], [])


NOT_PUBLIC = [
    "https://10.0.0.5",
    "https://192.168.1.1:8443",
    "https://169.254.169.254",
    "https://100.64.0.1",
    "https://0.0.0.0",
    "https://[fd00::1]",
    "https://[fe80::1]",
    "https://[::ffff:10.0.0.5]",
    "https://[64:ff9b::a00:5]",
    "https://167772165",
    "https://internal.test",
]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What the names of `.test` stand for, and how often each was looked up, under its own name."""
    known = {
        "internal.test": ["10.0.0.5"],
        "mixed.test": ["93.184.215.14", "10.0.0.5"],
        "here.test": ["127.0.0.1"],
    }
    real = fetcher.system_resolve

    def resolve(host: str, port: int) -> list[str]:
        known.setdefault(f"asked for {host}", []).append(str(port))
        return known.get(host) or real(host, port)

    monkeypatch.setattr(fetcher, "system_resolve", resolve)
    return known


@pytest.mark.parametrize("auth", [*NOT_PUBLIC, "https://mixed.test", "https://here.test"])
def test_an_authorization_server_at_a_private_address_is_not_reached(
    pair: Pair, names: dict[str, list[str]], auth: str
) -> None:
    pair.resource["authorization_servers"] = [auth]

    refuses(pair, REFUSED)


@pytest.mark.parametrize("auth", ["http://auth.example", "http://10.0.0.5", "http://internal.test"])
def test_an_authorization_server_without_tls_is_not_reached(pair: Pair, auth: str) -> None:
    pair.resource["authorization_servers"] = [auth]

    refuses(pair, "not https")


@pytest.mark.parametrize(
    "where", ["http://169.254.169.254/latest", "https://internal.test/prm", "http://a.example/"]
)
def test_a_challenge_leads_to_no_private_address(pair: Pair, names: dict[str, list[str]], where: str) -> None:
    pair.mcp.pages["POST /mcp"] = lambda *_: as_json(
        {}, status=401, WWW_Authenticate=f'Bearer resource_metadata="{where}"'
    )

    refuses(pair, REFUSED)


@pytest.mark.parametrize("endpoint", ["authorization", "token", "registration"])
@pytest.mark.parametrize("url", ["http://evil.example/x", "https://10.0.0.5/x", "https://internal.test/x"])
def test_no_endpoint_that_metadata_names_is_private_or_without_tls(
    pair: Pair, names: dict[str, list[str]], endpoint: str, url: str
) -> None:
    pair.metadata[f"{endpoint}_endpoint"] = url
    person = Person(iss=pair.auth.origin)

    with pytest.raises(UnsafeServerError, match=REFUSED):
        call(pair.url, person)

    assert len(person.sent_to) == (endpoint == "token")
    assert "POST /token" not in pair.auth.asked


def test_a_redirect_leads_to_no_other_server(pair: Pair) -> None:
    with serving() as elsewhere:
        pair.auth.pages[METADATA] = lambda *_: (302, {"Location": f"{elsewhere.origin}/x"}, b"")

        refuses(pair, "No authorization server says how to sign in")
        assert elsewhere.asked == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, {}, b"{" + b" " * client.MAX_BYTES + b"}"), "too much"),
        ((200, {"Content-Encoding": "gzip"}, b"\x1f\x8b"), "compressed"),
    ],
    ids=["long", "compressed"],
)
def test_an_answer_without_measure_is_refused(pair: Pair, answer: Any, words: str) -> None:
    pair.auth.pages[METADATA] = lambda *_: answer

    refuses(pair, words)


def test_an_answer_that_drips_is_refused(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_WITHIN", 0.2)
    pair.auth.pages[METADATA] = lambda *_: (200, {"Content-Length": "100"}, b"{")

    refuses(pair, "too slowly")


@pytest.mark.parametrize(
    "url", ["https://mcp.example/mcp", "https://10.0.0.5/mcp", "http://localhost:8000/mcp", "http://[::1]/"]
)
def test_a_server_is_reached_over_tls_or_on_this_machine(url: str) -> None:
    Reach(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://mcp.example/",
        "http://10.0.0.5/",
        "ftp://localhost/",
        "https://u@a.example/",
        "https:///",
        "",
        "http://[",
        "http://localhost.evil.example/",
    ],
)
def test_a_server_is_reached_in_no_other_way(url: str) -> None:
    with pytest.raises(UnsafeServerError):
        Reach(url)


@pytest.mark.parametrize(
    ("server", "host", "address", "reached"),
    [
        ("https://mcp.example/", "auth.example", "93.184.215.14", True),
        ("https://mcp.example/", "auth.example", "10.0.0.5", False),
        ("https://mcp.example/", "auth.example", "127.0.0.1", False),
        ("https://mcp.example/", "localhost", "127.0.0.1", False),
        ("https://mcp.example/", "mcp.example", "127.0.0.1", False),
        ("https://mcp.corp.example/", "mcp.corp.example", "10.0.0.5", True),
        ("https://mcp.corp.example/", "auth.corp.example", "10.0.0.5", False),
        ("http://localhost:8000/", "127.0.0.1", "127.0.0.1", True),
        ("http://localhost:8000/", "rebound.example", "127.0.0.1", False),
        ("http://localhost:8000/", "localhost", "10.0.0.5", False),
    ],
)
def test_what_a_name_stands_for_decides(
    monkeypatch: pytest.MonkeyPatch, server: str, host: str, address: str, *, reached: bool
) -> None:
    monkeypatch.setattr(fetcher, "system_resolve", lambda *_: [address])

    if reached:
        assert asyncio.run(Reach(server).find(host, 443)) == [address]
    else:
        with pytest.raises(UnsafeServerError, match="not a public address"):
            asyncio.run(Reach(server).find(host, 443))


def test_a_name_is_looked_up_once_for_a_connection(pair: Pair, names: dict[str, list[str]]) -> None:
    names["localhost"] = ["127.0.0.1"]
    url = pair.url.replace("127.0.0.1", "localhost")
    pair.mcp.pages["POST /mcp"] = lambda *_: as_json({"result": "open"})

    assert call(url, Person()).json() == {"result": "open"}
    assert len(names["asked for localhost"]) == 1


def test_the_environments_proxy_is_not_asked(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert call(pair.url, Person(iss=pair.auth.origin)).status_code == 200

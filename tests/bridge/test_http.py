"""What is refused before the SDK runs, in the order in which it is checked."""

from __future__ import annotations

import json
from datetime import timedelta
from http.client import HTTPConnection

import httpx2
import pytest
from django.contrib.auth.models import User

from confirmhub.oauth import bearer
from tests.bridge.hosts import call_message, make_token, post

LIST = call_message("list_confirmations", {})


@pytest.mark.parametrize("value", ["evil.example", "localhost", "localhost:1", "localhost.evil.example", ""])
def test_a_foreign_host_is_refused_before_anything_else(application: str, value: str) -> None:
    answer = post(application, b"not even JSON", headers={"host": value}, method="PUT")

    assert answer.status_code == 403
    assert answer.json()["error"]["message"].startswith(f"Host {value or '⟨empty⟩'} is not served here.")
    assert "www-authenticate" not in answer.headers


@pytest.mark.parametrize(
    "value", ["https://evil.example", "null", "http://localhost", "http://127.0.0.1:8000"]
)
def test_a_foreign_origin_is_refused_before_the_token_is_looked_at(application: str, value: str) -> None:
    answer = post(application, LIST, headers={"origin": value})

    assert answer.status_code == 403
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": f"Origin {value} is not served here. Use {application}."},
    }


def test_our_own_origin_is_served(url: str, token: str) -> None:
    assert post(url, LIST, token=token, headers={"origin": url}).status_code == 200


def test_an_offending_value_is_shown_on_one_line_with_nothing_hidden(application: str) -> None:
    answer = post(application, LIST, headers={"origin": b"https://\xa0evil\xad.example"})

    assert "⟨U+00A0⟩evil⟨U+00AD⟩.example" in answer.json()["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"])
def test_only_post_is_served(url: str, token: str, method: str) -> None:
    answer = post(url, b"", token=token, method=method)

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("kind", ["text/plain", "application/jsonx", "", "multipart/form-data"])
def test_another_content_type_is_refused(url: str, token: str, kind: str) -> None:
    assert post(url, LIST, token=token, headers={"content-type": kind}).status_code == 415


def test_a_compressed_body_is_refused(url: str, token: str) -> None:
    assert post(url, LIST, token=token, headers={"content-encoding": "gzip"}).status_code == 415


def test_a_body_of_64_kib_is_read_and_one_byte_more_is_not(application: str) -> None:
    just = b'"' + b"x" * (64 * 1024 - 2) + b'"'

    assert post(application, just).status_code == 400  # read, and no object
    assert post(application, just + b" ").status_code == 413


def test_a_body_that_does_not_say_its_length_is_bounded_too(application: str) -> None:
    chunks = (b"x" * 1024 for _ in range(65))
    answer = httpx2.post(f"{application}/mcp", content=chunks, headers={"content-type": "application/json"})

    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b'{"method":"a","method":"b"}', "same key twice", id="key-twice"),
        pytest.param(b'{"params":{"arguments":{"a":1,"a":2}}}', "same key twice", id="key-twice-deep"),
        pytest.param(b'{"a":NaN}', "NaN", id="nan"),
        pytest.param(b'{"a":-Infinity}', "-Infinity", id="infinity"),
        pytest.param(b'{"a":1e400}', "out of range", id="beyond-a-double"),
        pytest.param(b"[" * 81 + b"]" * 81, "deeper than 80", id="too-deep"),
        pytest.param(b"[" * 60_000, "deeper than 80", id="unclosed-and-deep"),
        pytest.param(b'{"a":"\xff"}', "UTF-8", id="not-utf-8"),
        pytest.param(b"\xef\xbb\xbf{}", "byte order mark", id="byte-order-mark"),
        pytest.param(b'{"a":1', "delimiter", id="cut-off"),
        pytest.param(b'{"a":' + b"1" * 5000 + b"}", "beyond 2**53-1", id="endless-integer"),
        pytest.param(b'{"a":0.10000000000000000555}', "not carry exactly", id="no-double"),
        pytest.param(b'"' + b'\\"' * 32_000, "Unterminated", id="endless-string"),
        pytest.param(b"", "Expecting value", id="empty"),
    ],
)
def test_json_that_two_readers_could_read_differently_is_refused(
    application: str, body: bytes, says: str
) -> None:
    answer = post(application, body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
    assert says in answer.json()["error"]["message"]


def test_brackets_in_strings_do_not_count_as_depth(url: str, token: str) -> None:
    message = call_message("get_confirmation", {"confirmation_id": "[" * 500 + '\\"'})

    assert post(url, message, token=token).status_code == 200


@pytest.mark.parametrize("version", ["2026-07-28", "2025-06-18", None])
@pytest.mark.parametrize("identity", [None, 1.5, True, [], {}])
def test_an_id_that_answers_nothing_is_refused_and_not_dropped(
    url: str, token: str, identity: object, version: str | None
) -> None:
    answer = post(url, LIST | {"id": identity}, token=token, version=version)

    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "The id of a call must be a text or an integer."


def test_who_takes_no_json_is_told_what_to_accept(url: str, token: str) -> None:
    answer = post(url, LIST, token=token, headers={"accept": "text/html"})

    assert answer.status_code == 406
    assert answer.json()["error"]["message"].endswith("Send Accept: application/json, text/event-stream.")


def test_two_content_types_are_refused(application: str) -> None:
    connection = HTTPConnection(application.removeprefix("http://"))  # httpx2 would join them
    connection.putrequest("POST", "/mcp")
    connection.putheader("content-type", "application/json")
    connection.putheader("content-type", "text/plain")
    connection.putheader("content-length", "0")
    connection.endheaders()

    assert connection.getresponse().status == 415
    connection.close()


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_the_address_with_a_slash_too_many_is_answered_with_the_right_one(
    application: str, method: str
) -> None:
    answer = httpx2.request(method, f"{application}/mcp/", json={})
    foreign = httpx2.request(method, f"{application}/mcp/", headers={"host": "evil.example"})

    assert (answer.status_code, foreign.status_code) == (404, 403)
    assert answer.json()["error"]["message"] == (
        f"There is nothing at this address. The endpoint is {application}/mcp, without a slash after it."
    )


def test_a_batch_is_refused(url: str, token: str) -> None:
    assert post(url, [LIST, LIST], token=token).status_code == 400


def test_without_a_token_the_challenge_names_scopes_and_metadata(application: str) -> None:
    answer = post(application, LIST)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == (
        'Bearer scope="confirm:read confirm:redeem confirm:request", '
        f'resource_metadata="{application}/.well-known/oauth-protected-resource/mcp"'
    )


def test_an_unknown_token_is_told_so(url: str) -> None:
    answer = post(url, LIST, token="chat_unknown")

    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"within": timedelta(seconds=-1)}, id="expired"),
        pytest.param({"resource": "http://localhost:1/mcp"}, id="another-audience"),
        pytest.param({"scope": "files:delete"}, id="without-the-base-scope"),
    ],
)
def test_a_token_that_is_not_for_us_is_refused(url: str, alice: User, bad: dict[str, object]) -> None:
    token = make_token(alice, **{"resource": f"{url}/mcp"} | bad)

    assert post(url, LIST, token=token).status_code == 401


def test_a_token_of_a_deactivated_person_is_refused(url: str, token: str, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)

    assert post(url, LIST, token=token).status_code == 401


def test_two_authorization_headers_are_refused(url: str, token: str) -> None:
    headers = [("authorization", f"Bearer {token}"), ("authorization", "Bearer other")]
    headers += [("content-type", "application/json"), ("accept", "application/json")]

    assert httpx2.post(f"{url}/mcp", json=LIST, headers=headers).status_code == 401


def test_a_missing_scope_is_challenged_with_what_is_held_and_needed(url: str, alice: User) -> None:
    token = make_token(alice, resource=f"{url}/mcp", scope="confirm:read confirm:request")
    answer = post(url, call_message("delete_file", {"path": "/x"}), token=token)

    assert answer.status_code == 403
    needed = "confirm:read confirm:redeem confirm:request files:delete"
    assert answer.headers["www-authenticate"] == (
        f'Bearer error="insufficient_scope", scope="{needed}", '
        f'resource_metadata="{url}/.well-known/oauth-protected-resource/mcp"'
    )
    assert answer.json()["error"]["message"] == "The access token lacks confirm:redeem, files:delete."


def test_the_scope_is_judged_by_the_body_and_not_by_a_header(url: str, alice: User) -> None:
    token = make_token(alice, resource=f"{url}/mcp", scope="confirm:read")
    disguised = {"mcp-name": "list_confirmations", "mcp-method": "tools/list"}
    message = call_message("delete_file", {"path": "/x"})

    assert post(url, message, token=token, headers=disguised).status_code == 403
    assert post(url, message, token=token, version=None, headers=disguised).status_code == 403


def test_white_space_around_a_header_is_not_part_of_it(url: str, token: str) -> None:
    headers = {
        "authorization": f"Bearer {token} ",
        "accept": "application/json",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": " tools/call",
        "mcp-name": " \tlist_confirmations \t",
        "origin": f"{url} ",
    }
    connection = HTTPConnection(url.removeprefix("http://"))  # httpx would not send it
    connection.request("POST", "/mcp", json.dumps(LIST), headers)

    assert connection.getresponse().status == 200
    connection.close()


def test_the_scope_of_administration_implies_the_others(url: str, alice: User) -> None:
    token = make_token(alice, resource=f"{url}/mcp", scope="confirm:admin")

    assert post(url, call_message("delete_file", {"path": "/x"}), token=token).status_code == 200


def test_a_database_that_does_not_answer_is_no_refusal_of_the_token(
    application: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(*, tokens: list[str], for_api: bool) -> tuple[str, list[object]]:
        return "SELECT pg_terminate_backend(pg_backend_pid())", []

    monkeypatch.setattr(bearer, "statement", cut_off)
    answer = post(application, LIST, token="chat_any")

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "terminat" not in answer.text


def test_the_metadata_names_resource_issuer_and_scopes(application: str) -> None:
    answer = httpx2.get(f"{application}/.well-known/oauth-protected-resource/mcp")

    assert answer.json() == {
        "resource": f"{application}/mcp",
        "authorization_servers": [application],
        "scopes_supported": ["confirm:read", "confirm:request", "confirm:redeem"],
        "bearer_methods_supported": ["header"],
        "resource_name": "confirmhub",
    }


def test_the_metadata_is_not_served_to_a_foreign_host(application: str) -> None:
    path = f"{application}/.well-known/oauth-protected-resource/mcp"

    assert httpx2.get(path, headers={"host": "evil.example"}).status_code == 403
    assert httpx2.post(path).status_code == 405
